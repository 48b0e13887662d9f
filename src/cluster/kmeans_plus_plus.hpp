// The first centres by greedy k-means++ (Arthur and Vassilvitskii 2007, section 2.2 and its greedy form).
//
// Each next centre is one of a few candidate rows, drawn with a likelihood in proportion to their squared distance to
// the centres so far: the one that lowers the sum of these distances most. Distances are canonical, sums and draws have
// one order (draw_tree.hpp), random numbers are counted: the same centres on every machine.
//
// A distance matters only where it is shorter than the row's distance so far. A product (kernels/panels) finds the
// rows for which it can be; the more centres there are, the fewer.
//
// Cost: 2 (2 + ln(clusters)) rows x clusters x columns operations, f32 or bytes. Memory: the rows as f32 and packed,
// and 4 (3 + ln(clusters)) bytes for each.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/view.hpp>

#include "cluster/draw_tree.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "kernels/panels/packed_rows.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// How many rows are tried for each centre but the first.
int64_t plus_plus_trials(int64_t clusters);
// Where in the sum a draw falls: in [0, 1), 53 bits. The first centre's draw is number 0, then come those of each
// centre's trials.
double plus_plus_share(const CounterRng& rng, uint64_t number);
// The first centre: each of so many rows is as likely as its weight, if there are weights.
uint32_t first_plus_plus_row(int64_t rows, const std::vector<float>& weights, const CounterRng& rng);

class KMeansPlusPlus {
 public:
  // Of a sample of so many rows, which the caller keeps as f32, packed in centre_format().
  static int64_t bytes_for(PanelFormat format, int64_t rows, int64_t clusters, int64_t cols, int threads);

  // `rows` are f32, one after the other; `weights` may be empty.
  KMeansPlusPlus(PanelFormat format, const MatrixView& rows, std::vector<float> weights, int64_t clusters,
                 const Resources& resources);

  // Row numbers of the centres, in the order they were chosen.
  std::vector<uint32_t> choose(const CounterRng& rng, ProgressMeter& meter, const Resources& resources);

 private:
  double weight(int64_t i) const {
    return weights_.empty() ? 1.0 : static_cast<double>(weights_[static_cast<size_t>(i)]);
  }
  // The weighted distances of a segment's rows (draw_tree.hpp), added up.
  double segment_sum(const float* distances, int64_t segment) const;
  // The row at this share of the weighted distances' sum.
  uint32_t draw(double share) const;
  // What each row's distance, and each block's sum, would become with each trial row as a centre.
  void try_rows(const std::vector<uint32_t>& trials, ProgressMeter& meter, const Resources& resources);
  void take(int64_t trial);

  class Hits;

  MatrixView rows_;
  std::vector<float> weights_;
  int64_t clusters_;
  int64_t trials_;
  DrawTree tree_;
  HostArray<float> nearest_;    // the squared distance of each row to the nearest centre
  HostArray<float> distances_;  // the same with each trial row added
  MatrixBuffer trial_rows_;
  PackedRows packed_trials_;
  PackedQueries packed_;            // every block begins a panel
  HostArray<float> limits_;         // of packed_
  std::vector<double> sums_;        // the tree's, now
  std::vector<double> trial_sums_;  // and with each trial row added
};

}  // namespace kith
