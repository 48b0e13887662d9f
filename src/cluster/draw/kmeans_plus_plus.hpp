// The first centres by greedy k-means++ (Arthur and Vassilvitskii 2007, section 2.2 and its greedy form).
//
// Each next centre is one of a few candidate rows, drawn with a likelihood in proportion to their squared distance to
// the centres so far: the one that lowers the sum of these distances most. Distances are canonical, sums and draws have
// one order (draw_tree.hpp), random numbers are counted: the same centres on every machine.
//
// A distance matters only where it is shorter than the row's distance so far. A product finds the rows for which it can
// be; the more centres there are, the fewer: of rows as they lie (centre_table_cpu.hpp), or of packed rows where
// there are so many columns that reading bytes instead of floats pays (kernels/panels).
//
// Cost: 2 (2 + ln(clusters)) rows x clusters x columns operations, f32 or bytes. Memory: 4 (3 + ln(clusters)) bytes for
// each row, and the packed rows; where there is no room for these, rows are fetched and packed anew for each centre.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/view.hpp>

#include "cluster/draw/draw_tree.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "kernels/assign/centre_table_cpu.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <deque>
#include <vector>

namespace kith {

// Rows that are tried for each centre but the first.
int64_t plus_plus_trials(int64_t clusters);

// Of a draw by number: in [0, 1), 53 bits.
double plus_plus_share(const CounterRng& rng, uint64_t number);

// The first centre: each of so many rows is as likely as its weight, if there are weights, else
// null.
uint32_t first_plus_plus_row(int64_t rows, const float* weights, const CounterRng& rng);

// What is chosen from, on the host.
struct PlusPlusRows {
  RowSource& source;
  int64_t piece_rows = 0;          // fetched at a time: whole kSumBlocks, or all
  bool packed_stay = true;         // all packed rows are kept
  const float* weights = nullptr;  // one for each row, or none
};

class KMeansPlusPlus {
 public:
  static int64_t bytes_for(PanelFormat format, int64_t rows, int64_t clusters, int64_t cols, int threads,
                           bool packed_stay);

  // Packed in centre_format().
  KMeansPlusPlus(PanelFormat format, const PlusPlusRows& rows, int64_t clusters, ProgressMeter& meter,
                 const Resources& resources);

  // Row numbers of the centres, in the order they were chosen. Where `potentials` are given they get the potential with
  // the first centre, the first two, and so on.
  std::vector<uint32_t> choose(const CounterRng& rng, ProgressMeter& meter, const Resources& resources,
                               std::vector<double>* potentials = nullptr);

  // The same step by step: the first centre; then rows drawn by shares, up to plus_plus_trials() of them tried, each
  // leaving a potential, and one of these taken.
  void begin(uint32_t row, ProgressMeter& meter, const Resources& resources);
  uint32_t draw(double share) const;
  std::vector<double> try_rows(const std::vector<uint32_t>& trials, ProgressMeter& meter, const Resources& resources);
  void take(int64_t trial);
  // The sum of weight x squared distance to the nearest centre.
  double potential() const { return tree_total(tree_, sums_.data()); }

 private:
  class Hits;
  // Working memory of one thread.
  struct Scratch {
    HostArray<float> limits;       // of a block's packed rows
    HostArray<float> rows;         // widened, for a panel
    HostArray<std::byte> packing;  // what packing needs
    PackedQueries packed;          // some rows, where packed rows do not stay
    HostArray<float> few;          // for rows as they lie
  };

  // Calls use(view, first row) for the rows, piece by piece.
  template <typename Use>
  void for_pieces(const Use& use);
  void pack(const MatrixView& rows, int64_t first, int64_t count, PackedQueries& packed, int64_t place,
            Scratch& scratch);
  // What each row's distance, and each block's sum, would become with each trial row as a centre. `piece`, which has
  // the rows of the block, begins with row `piece_first`.
  void try_block(const MatrixView& piece, int64_t piece_first, int64_t block, Scratch& scratch);

  PlusPlusRows from_;
  int64_t cols_;
  int64_t clusters_;
  int64_t trials_;
  bool packs_;
  int64_t tried_ = 0;  // rows that are tried now
  DrawTree tree_;
  int64_t together_;            // rows that are packed together: a multiple of every panel's width
  HostArray<float> nearest_;    // the squared distance of each row to the nearest centre
  HostArray<float> distances_;  // the same with each trial row added
  MatrixBuffer trial_rows_;
  CentreTable few_trials_;
  PackedRows packed_trials_;
  PackedQueries packed_;  // all rows, where they stay: every block begins a panel
  std::deque<Scratch> scratch_;
  std::vector<double> sums_;        // the tree's, now
  std::vector<double> trial_sums_;  // and with each trial row added
};

}  // namespace kith
