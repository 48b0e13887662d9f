// Where k-means keeps its things in the one block of device memory it takes: the plan counts these bytes and the
// backend lays out by them, so what is used is what was planned.
#pragma once

#include "cluster/centre_sums.hpp"
#include "cluster/draw_tree.hpp"
#include "cluster/kmeans_plan.hpp"
#include "cuda/workspace_layout.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// What sorting so many rows by centre takes beside them: counts of 256 digits for every 2,048 rows, and little else.
inline int64_t centre_sort_bytes(int64_t rows) { return rows / 2 + (int64_t{1} << 20); }

// Offsets from the start of the block; a part that is not needed has no bytes. "Piece" is the largest
// number of rows handled at a time, "runs" are the rows of one centre in one sum_block.
struct KMeansWorkspace : WorkspaceLayout {
  int64_t piece_capacity = 0;
  int64_t run_capacity = 0;
  CentreSearchShape search_shape;

  // Of every row.
  int64_t labels = 0;      // i32
  int64_t keys = 0;        // f32
  int64_t weights = 0;     // f32, where given
  int64_t rows = 0;        // as they came: all, or a piece
  int64_t rows_ahead = 0;  // every other piece, where they come ahead

  // Of a piece.
  int64_t search = 0;         // CentreSearchLayout
  int64_t gathered = 0;       // a mini-batch of rows that lie on the device
  int64_t gather_list = 0;    // u32
  int64_t sort_keys[2] = {};  // u32
  int64_t sort_rows[2] = {};  // u32
  int64_t sort = 0;           // for sorting
  int64_t run_starts = 0;     // u32, run_capacity + 1
  int64_t run_sums = 0;       // run_capacity x cols, f64
  int64_t run_weights = 0;    // run_capacity, f64

  // Of candidates for the first centres, where they are drawn in rounds.
  int64_t nearest = 0;         // f32, of every row
  int64_t owners = 0;          // i32, likewise
  int64_t draw_sums = 0;       // f64, of the draws' tree
  int64_t shares = 0;          // f64, of a round's draws
  int64_t drawn = 0;           // u32, likewise
  int64_t candidate_rows = 0;  // u32, of each candidate

  // Of the centres.
  int64_t centres[2] = {};  // f32; as they are, and as they will be
  int64_t open_sums = 0;    // of a block that has not ended: as the sums
  int64_t counts = 0;       // f64
  int64_t sums = 0;         // f64, then a weight for each centre
  // What the host looks at after a pass, in one copy: the sums' weights, and these.
  int64_t moves = 0;       // f64
  int64_t objectives = 0;  // f64, one for each kSumBlock

  int64_t sort_bytes = 0;

  KMeansWorkspace(const KMeansShape& shape, const KMeansWish& wish, const KMeansPlan& plan) {
    const KMeansCudaPlan& cuda = plan.cuda;
    const bool host_rows = shape.space.host_readable();
    const bool sums_up = wish.moves_centres;
    const int64_t row_bytes = saturating_multiply(shape.cols, size_of(shape.dtype));
    const int64_t all = sums_up ? shape.rows : plan.piece_rows;
    piece_capacity = std::max(std::min(plan.piece_rows, std::max<int64_t>(shape.rows, 1)), wish.batch_rows);
    run_capacity = (piece_capacity / sum_block(shape.clusters) + 2) * shape.clusters;
    search_shape = {piece_capacity, cuda.operands_stay ? all : 0, shape.clusters, shape.cols, shape.dtype, wish.kind()};

    labels = take(all, sizeof(int32_t));
    keys = take(all, sizeof(float));
    weights = take(shape.weighted ? all : 0, sizeof(float));
    rows = take(!host_rows ? 0 : cuda.rows_stay ? all : piece_capacity, row_bytes);
    rows_ahead = take(cuda.rows_ahead ? piece_capacity : 0, row_bytes);

    search = take(CentreSearchLayout(search_shape, cuda.search).bytes, 1);
    gathered = take(host_rows ? 0 : wish.batch_rows, row_bytes);
    gather_list = take(host_rows ? 0 : wish.batch_rows, sizeof(uint32_t));
    const int64_t sorted = sums_up && !cuda.lists_rows ? piece_capacity : 0;
    for (int i = 0; i < 2; ++i) {
      sort_keys[i] = take(sorted, sizeof(uint32_t));
      sort_rows[i] = take(sorted, sizeof(uint32_t));
    }
    sort_bytes = sorted > 0 ? centre_sort_bytes(sorted) : 0;
    sort = take(sort_bytes, 1);
    const int64_t runs = sums_up ? run_capacity : 0;
    run_starts = take(runs + 1, sizeof(uint32_t));
    run_sums = take(runs, saturating_multiply(shape.cols, sizeof(double)));
    run_weights = take(runs, sizeof(double));

    const int64_t drawing = wish.candidates > 0 ? all : 0;
    const int64_t draws = wish.candidates > 0 ? shape.clusters : 0;
    nearest = take(drawing, sizeof(float));
    owners = take(drawing, sizeof(int32_t));
    draw_sums = take(drawing > 0 ? DrawTree(drawing).size : 0, sizeof(double));
    shares = take(draws, sizeof(double));
    drawn = take(draws, sizeof(uint32_t));
    candidate_rows = take(wish.candidates, sizeof(uint32_t));

    const int64_t totals = sums_up ? shape.clusters : 0;
    const int64_t sum_bytes = saturating_multiply(shape.cols + 1, sizeof(double));
    const int64_t centre_bytes = saturating_multiply(shape.cols, sizeof(float));
    centres[0] = take(shape.clusters, centre_bytes);
    centres[1] = take(totals, centre_bytes);
    open_sums = take(totals, sum_bytes);
    counts = take(totals, sizeof(double));
    sums = take(totals, sum_bytes);
    moves = take(totals, sizeof(double));
    objectives = take(all / kSumBlock + 1, sizeof(double));
  }
};

}  // namespace kith
