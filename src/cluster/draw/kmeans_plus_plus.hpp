// The first centres by greedy k-means++ (Arthur and Vassilvitskii 2007, section 2.2 and its greedy form).
//
// Each next centre is one of a few candidate rows, drawn with a likelihood in proportion to their squared distance to
// the centres so far: the one that lowers the sum of these distances most. Distances are canonical, sums and draws have
// one order (draw_tree.hpp), random numbers are counted: the same centres on every machine.
//
// A distance matters only where it is shorter than the row's distance so far. A product of packed rows (kernels/panels)
// finds the rows for which it can be; the more centres there are, the fewer.
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
#include "kernels/panels/packed_queries.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <deque>
#include <vector>

namespace kith {

// Rows that are tried for each centre but the first.
int64_t plus_plus_trials(int64_t clusters);

// The random share of the draw with this number: in [0, 1), 53 bits.
double plus_plus_share(const CounterRng& rng, uint64_t number);

// The first centre: each of so many rows is as likely as its weight, if there are weights, else
// null.
uint32_t first_plus_plus_row(int64_t rows, const float* weights, const CounterRng& rng);

// What is chosen from, on the host.
struct PlusPlusRows {
  RowSource* source = nullptr;  // null where memory is only counted
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t piece_rows = 0;          // fetched at a time: whole kSumBlocks, or all
  bool packed_stay = true;         // all packed rows are kept
  const float* weights = nullptr;  // one for each row, or none

  PlusPlusRows(int64_t count, int64_t columns, bool stay) : rows(count), cols(columns), packed_stay(stay) {}
  PlusPlusRows(RowSource& from, int64_t piece, bool stay = true, const float* each = nullptr)
      : source(&from), rows(from.rows()), cols(from.info().cols), piece_rows(piece), packed_stay(stay), weights(each) {}
};

class KMeansPlusPlus {
 public:
  // Packed in centre_format().
  KMeansPlusPlus(PanelFormat format, const PlusPlusRows& rows, int64_t clusters, const Resources& resources);

  // Row numbers of the centres, in the order they were chosen. Where `potentials` are given they get the potential with
  // the first centre, the first two, and so on: the sum of weight x squared distance to the nearest centre.
  std::vector<uint32_t> choose(const CounterRng& rng, ProgressMeter& meter, const Resources& resources,
                               std::vector<double>* potentials = nullptr);

 private:
  class Hits;
  // Working memory of one thread.
  struct Scratch {
    HostArray<float> limits;       // of a block's packed rows
    HostArray<float> rows;         // widened, for a panel
    HostArray<std::byte> packing;  // what packing needs
    PackedQueries packed;          // some rows, where packed rows do not stay
  };

  // Calls use(view, first row) for the rows, piece by piece.
  template <typename Use>
  void for_pieces(const Use& use);
  void pack(const MatrixView& rows, int64_t first, int64_t count, PackedQueries& packed, int64_t place,
            Scratch& scratch);
  void pack_all(ProgressMeter& meter, const Resources& resources);
  // What each row's distance, and each block's sum, would become with each trial row as a centre. `piece`, which has
  // the rows of the block, begins with row `piece_first`.
  void try_block(const MatrixView& piece, int64_t piece_first, int64_t block, int64_t trials, Scratch& scratch);
  // Takes the trial row that leaves the least potential, which is returned, as a centre.
  double take_best(const std::vector<uint32_t>& trials, uint32_t* chosen, ProgressMeter& meter,
                   const Resources& resources);

  PlusPlusRows from_;
  int64_t clusters_;
  int64_t trials_;
  DrawTree tree_;
  int64_t together_;            // rows that are packed together: a multiple of every panel's width
  HostArray<float> nearest_;    // the squared distance of each row to the nearest centre
  HostArray<float> distances_;  // the same with each trial row added
  MatrixBuffer trial_rows_;
  PackedRows packed_trials_;
  HostArray<std::byte> packing_;  // what packing these needs
  PackedQueries packed_;          // all rows, where they stay: every block begins a panel
  std::deque<Scratch> scratch_;
  HostArray<double> sums_;        // the tree's, now
  HostArray<double> trial_sums_;  // and with each trial row added
};

}  // namespace kith
