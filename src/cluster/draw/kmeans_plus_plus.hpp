// The first centres by greedy k-means++ (Arthur and Vassilvitskii 2007, section 2.2 and its greedy form).
//
// Each next centre is chosen from a few trial rows, drawn in proportion to their squared distance to the nearest centre
// so far: the one that lowers the sum of these distances most. Distances are canonical, sums and draws have a fixed
// order (draw_tree.hpp), and random numbers are counter-based, so all machines choose the same centres.
//
// A distance to a trial row matters only if it is below the row's distance so far. A product of packed rows
// (kernels/panels) finds the rows for which it may be; with more centres they become fewer.
//
// Cost: 2 (2 + ln(clusters)) rows x clusters x columns operations, f32 or bytes. Memory: 4 (3 + ln(clusters)) bytes for
// each row, and the packed rows; if these do not fit, rows are fetched and packed again for each centre.
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

// The number of trial rows for each centre but the first.
int64_t plus_plus_trials(int64_t clusters);

// The random share of the draw with this number: in [0, 1), 53 bits.
double plus_plus_share(const CounterRng& rng, uint64_t number);

// Draws the first centre among `rows` rows, in proportion to `weights`, or uniformly if that is
// null.
uint32_t first_plus_plus_row(int64_t rows, const float* weights, const CounterRng& rng);

// The rows to choose from, on the host.
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

  // Row numbers of the centres, in the order of choice. `potentials`, if given, receives the potential with the first
  // centre, the first two, and so on: the sum of weight x squared distance to the nearest centre.
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
  // Computes each row's distance and each block's sum with each trial row as a further centre. `piece` begins with row
  // `piece_first` and contains the rows of the block.
  void try_block(const MatrixView& piece, int64_t piece_first, int64_t block, int64_t trials, Scratch& scratch);
  // Adds the trial row with the least potential as a centre, and returns that potential.
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
  HostArray<std::byte> packing_;  // scratch memory for packing them
  PackedQueries packed_;          // all rows, where they stay: every block begins a panel
  std::deque<Scratch> scratch_;
  HostArray<double> sums_;        // the tree's, now
  HostArray<double> trial_sums_;  // and with each trial row added
};

}  // namespace kith
