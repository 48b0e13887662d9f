// Where k-means keeps its things in the one block of device memory it takes: the plan counts these bytes and the
// backend lays out by them, so what is used is what was planned.
#pragma once

#include "cluster/centre_sums.hpp"
#include "cluster/kmeans_plan.hpp"
#include "core/byte_size.hpp"
#include "cuda/workspace_layout.hpp"
#include "kernels/matrix/nearest_rows.hpp"
#include "kernels/matrix/operand_facts.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// The centres are cut into so many parts at most, where there are no more query tiles than this.
inline constexpr int64_t kMostNearestParts = 8;
inline constexpr int64_t kFewQueryTiles = 256;

// What sorting so many rows by centre takes beside them: counts of 256 digits for every 2,048 rows, and little else.
inline int64_t centre_sort_bytes(int64_t rows) { return rows / 2 + (int64_t{1} << 20); }

// Of a piece: how many rows have failed, how many are unsettled, and the first that is not finite.
struct SearchCounts {
  uint32_t failed;
  uint32_t unsettled;
  uint32_t first_bad;
};

// Offsets from the start of the block; a part that is not needed has no bytes. "Piece" is the largest
// number of rows handled at a time, "runs" are the rows of one centre in one sum_block.
struct KMeansWorkspace : WorkspaceLayout {
  int64_t piece_capacity = 0;
  int64_t run_capacity = 0;

  // Of every row.
  int64_t labels = 0;      // i32
  int64_t keys = 0;        // f32
  int64_t weights = 0;     // f32, where given
  int64_t objectives = 0;  // f64, one for each kSumBlock
  int64_t rows = 0;        // as they came: all, or a piece
  int64_t rows_ahead = 0;  // every other piece, where they come ahead
  int64_t operands = 0;    // of all rows, or of a piece
  int64_t facts = 0;       // QueryFacts, likewise

  // Of a piece.
  int64_t limits = 0;         // f32
  int64_t slacks = 0;         // f32
  int64_t candidates = 0;     // NearestRows for each part
  int64_t failed = 0;         // u32: rows that products are not sure of
  int64_t unsettled = 0;      // u32: rows with more than one candidate
  int64_t failed_rows = 0;    // rest_rows, as they came
  int64_t failed_found = 0;   // rest_rows packed neighbours, u64
  int64_t gathered = 0;       // a mini-batch of rows that lie on the device
  int64_t gather_list = 0;    // u32
  int64_t sort_keys[2] = {};  // u32
  int64_t sort_rows[2] = {};  // u32
  int64_t sort = 0;           // for sorting
  int64_t run_starts = 0;     // u32, run_capacity + 1
  int64_t run_sums = 0;       // run_capacity x cols, f64
  int64_t run_weights = 0;    // run_capacity, f64

  // Of the centres.
  int64_t centres = 0;  // f32
  int64_t centre_operands = 0;
  int64_t centre_terms = 0;
  int64_t origin = 0;        // cols, f32
  int64_t centre_facts = 0;  // BaseFacts
  int64_t sums = 0;          // f64, then a weight for each centre
  int64_t open_sums = 0;     // of a block that has not ended: the same
  int64_t moves = 0;         // f64
  int64_t counts = 0;        // f64
  int64_t status = 0;        // SearchCounts

  int64_t sort_bytes = 0;

  KMeansWorkspace(const KMeansProblem& problem, const KMeansPlan& plan) {
    const KMeansCudaPlan& cuda = plan.cuda;
    const bool host_rows = problem.space.kind != MemoryKind::cuda;
    const int64_t row_bytes = saturating_multiply(problem.cols, size_of(problem.dtype));
    const int64_t all = problem.adds_up ? problem.rows : plan.piece_rows;
    const int64_t chunks = operand_chunks(problem.cols, 2);
    piece_capacity = std::max(std::min(plan.piece_rows, std::max<int64_t>(problem.rows, 1)), problem.batch_rows);
    run_capacity = (piece_capacity / sum_block(problem.clusters) + 2) * problem.clusters;

    labels = take(all, 4);
    keys = take(all, 4);
    weights = take(problem.weighted ? all : 0, 4);
    objectives = take(all / kSumBlock + 1, 8);
    rows = take(!host_rows ? 0 : cuda.rows_stay ? all : piece_capacity, row_bytes);
    rows_ahead = take(cuda.rows_ahead ? piece_capacity : 0, row_bytes);
    const int64_t with_operands = !cuda.products ? 0 : cuda.operands_stay ? all : piece_capacity;
    operands = take(operand_tiles(with_operands), saturating_multiply(chunks, kTileChunkBytes));
    facts = take(with_operands, sizeof(QueryFacts));

    const int64_t padded = operand_tiles(piece_capacity) * kOperandTile;
    // A piece with few rows has its centres in parts: as many as fill the machine twice.
    const int64_t few = (2 * int64_t{cuda.multiprocessors} + kFewQueryTiles) * kQueryTile;
    const int64_t in_parts = std::max(padded, std::min(kMostNearestParts * padded, few));
    slacks = take(cuda.products ? piece_capacity : 0, 4);
    limits = take(cuda.products ? piece_capacity : 0, 4);
    candidates = take(cuda.products ? in_parts : 0, sizeof(NearestRows));
    failed = take(cuda.products ? piece_capacity : 0, 4);
    unsettled = take(cuda.products ? piece_capacity : 0, 4);
    failed_rows = take(cuda.products ? cuda.rest_rows : 0, row_bytes);
    failed_found = take(cuda.rest_rows, 8);
    gathered = take(host_rows ? 0 : problem.batch_rows, row_bytes);
    gather_list = take(host_rows ? 0 : problem.batch_rows, 4);
    const int64_t sorted = problem.adds_up ? piece_capacity : 0;
    for (int i = 0; i < 2; ++i) {
      sort_keys[i] = take(sorted, 4);
      sort_rows[i] = take(sorted, 4);
    }
    sort_bytes = problem.adds_up ? centre_sort_bytes(sorted) : 0;
    sort = take(sort_bytes, 1);
    const int64_t runs = problem.adds_up ? run_capacity : 0;
    run_starts = take(runs + 1, 4);
    run_sums = take(runs, saturating_multiply(problem.cols, 8));
    run_weights = take(runs, 8);

    const int64_t k = problem.clusters;
    const int64_t totals = problem.adds_up ? k : 0;
    centres = take(k, saturating_multiply(problem.cols, 4));
    centre_operands = take(cuda.products ? operand_tiles(k) : 0, saturating_multiply(chunks, kTileChunkBytes));
    centre_terms = take(operand_tiles(k) * kOperandTile, 4);
    origin = take(problem.cols, 4);
    centre_facts = take(1, sizeof(BaseFacts));
    sums = take(totals, saturating_multiply(problem.cols + 1, 8));
    open_sums = take(totals, saturating_multiply(problem.cols + 1, 8));
    moves = take(totals, 8);
    counts = take(totals, 8);
    status = take(1, sizeof(SearchCounts));
  }
};

}  // namespace kith
