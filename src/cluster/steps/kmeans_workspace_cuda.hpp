// The layout of k-means' single block of device memory: the plan counts these bytes and the backend uses the layout, so
// what is used is what was planned.
#pragma once

#include "cluster/draw/draw_tree.hpp"
#include "cluster/steps/kmeans_plan.hpp"
#include "cuda/workspace_layout.hpp"
#include "kernels/assign/centre_sums.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// Scratch memory for sorting rows by centre: mainly counts of 256 digits for every 2,048 rows.
inline int64_t centre_sort_bytes(int64_t rows) { return rows / 2 + (int64_t{1} << 20); }

// A part that is not needed has no values. "Piece" is the largest number of rows handled at a time, "runs" are the rows
// of one centre in one sum_block.
struct KMeansWorkspace : WorkspaceLayout {
  int64_t piece_capacity = 0;
  int64_t run_capacity = 0;
  CentreSearchShape search_shape;

  // One value for each row:
  Slot<int32_t> labels;
  Slot<float> keys;
  Slot<float> weights;         // where given
  Slot<std::byte> rows;        // as they came: all, or a piece
  Slot<std::byte> rows_ahead;  // every other piece, where they come ahead

  // For a piece.
  Slot<std::byte> search;    // CentreSearchLayout
  Slot<std::byte> gathered;  // a mini-batch of rows that are on the device
  Slot<uint32_t> gather_list;
  Slot<uint32_t> sort_keys[2];
  Slot<uint32_t> sort_rows[2];
  Slot<std::byte> sort;       // for sorting
  Slot<uint32_t> run_starts;  // run_capacity + 1
  Slot<double> run_sums;      // run_capacity x cols
  Slot<double> run_weights;   // run_capacity

  // For candidates of the first centres, where they are drawn in rounds.
  Slot<float> nearest;            // of every row
  Slot<int32_t> owners;           // likewise
  Slot<double> draw_sums;         // of the draws' tree
  Slot<double> shares;            // of a round's draws
  Slot<uint32_t> drawn;           // likewise
  Slot<uint32_t> candidate_rows;  // of each candidate

  // For the centres.
  Slot<float> centres[2];  // as they are, and as they will be
  Slot<double> open_sums;  // of a block that has not ended: as the sums
  Slot<double> counts;
  Slot<double> sums;  // then a weight for each centre
  // What the host looks at after a pass, in one copy: the sums' weights, and these.
  Slot<double> moves;
  Slot<double> objectives;  // one for each kSumBlock

  KMeansWorkspace(const KMeansShape& shape, const KMeansRequest& request, const KMeansPlan& plan) {
    const KMeansCudaPlan& cuda = *plan.cuda();
    const bool host_rows = shape.space.host_readable();
    const bool sums_up = request.moves_centres;
    const int64_t all = sums_up ? shape.rows : plan.piece_rows;
    piece_capacity = std::max(std::min(plan.piece_rows, std::max<int64_t>(shape.rows, 1)), request.batch_rows);
    run_capacity = (piece_capacity / sum_block(shape.clusters) + 2) * shape.clusters;
    search_shape = {piece_capacity, cuda.operands_stay ? all : 0, shape.clusters, shape.cols, shape.dtype, request.kind()};

    labels = take<int32_t>(all);
    keys = take<float>(all);
    weights = take<float>(shape.weighted ? all : 0);
    rows = take_rows(!host_rows ? 0 : cuda.rows_stay ? all : piece_capacity, shape.cols, shape.dtype);
    rows_ahead = take_rows(cuda.rows_ahead ? piece_capacity : 0, shape.cols, shape.dtype);

    search = take_layout(CentreSearchLayout(search_shape, cuda.search));
    gathered = take_rows(host_rows ? 0 : request.batch_rows, shape.cols, shape.dtype);
    gather_list = take<uint32_t>(host_rows ? 0 : request.batch_rows);
    const int64_t sorted = sums_up && !cuda.lists_rows ? piece_capacity : 0;
    for (int i = 0; i < 2; ++i) {
      sort_keys[i] = take<uint32_t>(sorted);
      sort_rows[i] = take<uint32_t>(sorted);
    }
    sort = take<std::byte>(sorted > 0 ? centre_sort_bytes(sorted) : 0);
    const int64_t runs = sums_up ? run_capacity : 0;
    run_starts = take<uint32_t>(runs + 1);
    run_sums = take<double>(runs, shape.cols);
    run_weights = take<double>(runs);

    const int64_t drawing = request.candidates > 0 ? all : 0;
    const int64_t draws = request.candidates > 0 ? shape.clusters : 0;
    nearest = take<float>(drawing);
    owners = take<int32_t>(drawing);
    draw_sums = take<double>(drawing > 0 ? DrawTree(drawing).size : 0);
    shares = take<double>(draws);
    drawn = take<uint32_t>(draws);
    candidate_rows = take<uint32_t>(request.candidates);

    const int64_t totals = sums_up ? shape.clusters : 0;
    centres[0] = take<float>(shape.clusters, shape.cols);
    centres[1] = take<float>(totals, shape.cols);
    open_sums = take<double>(totals, shape.cols + 1);
    counts = take<double>(totals);
    sums = take<double>(totals, shape.cols + 1);
    moves = take<double>(totals);
    objectives = take<double>(all / kSumBlock + 1);
  }
};

}  // namespace kith
