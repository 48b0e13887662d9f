// The first centres by greedy k-means++ (Arthur and Vassilvitskii 2007, section 2.2 and its greedy form).
//
// Each next centre is one of a few candidate rows, drawn with a likelihood in proportion to their squared distance to
// the centres so far: the one that lowers the sum of these distances most. Distances are canonical, sums are made in
// blocks of kSumBlock rows and added in order, random numbers are counted: the same centres on every machine.
//
// A distance matters only where it is shorter than the row's distance so far. A product (kernels/product) finds the
// rows for which it can be; the more centres there are, the fewer.
//
// Cost: 2 (2 + ln(clusters)) rows x clusters x columns operations, f32 or bytes. Memory: the rows as f32 and packed,
// and 4 (3 + ln(clusters)) bytes for each.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/view.hpp>

#include "cluster/centre_panels.hpp"
#include "cluster/row_panels.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class KMeansPlusPlus {
 public:
  // Of a sample of so many rows, which the caller keeps as f32.
  static int64_t bytes_for(int64_t rows, int64_t clusters, int64_t cols);

  // `rows` are f32, one after the other; `weights` may be empty.
  KMeansPlusPlus(const MatrixView& rows, std::vector<float> weights, int64_t clusters, const Resources& resources);

  // Row numbers of the centres, in the order they were chosen.
  std::vector<uint32_t> choose(const CounterRng& rng, ProgressMeter& meter, const Resources& resources);

 private:
  double weight(int64_t i) const {
    return weights_.empty() ? 1.0 : static_cast<double>(weights_[static_cast<size_t>(i)]);
  }
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
  int64_t blocks_;
  HostBuffer nearest_;    // the squared distance of each row to the nearest centre
  HostBuffer distances_;  // the same with each trial row added
  MatrixBuffer trial_rows_;
  CentrePanels trial_panels_;
  RowPanels panels_;  // every block begins at a multiple of RowPanels::kAlignment
  std::vector<float> origin_;
  std::vector<double> sums_;        // of each block, now
  std::vector<double> trial_sums_;  // and with each trial row added
};

}  // namespace kith
