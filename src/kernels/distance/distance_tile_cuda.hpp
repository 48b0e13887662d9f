// The core of the canonical distance kernel: one block computes the keys of a tile of queries against a tile of rows.
//
// Sixteen neighbouring threads share 8 x 8 pairs, a thread for each lane of the canonical sum: 64 accumulators, each
// advanced by exactly the operations of canonical.hpp, and 16 values read from shared memory for 64 steps. The tree of
// the lanes is walked at the end: with the thread 8, 4, 2 and 1 apart a thread trades half of its pairs, so that four
// finished sums are left in each. Values come through shared memory in stages of 32 columns, widened to double and, for
// cosine, scaled; those of the next stage are on their way while one is summed. What lies past the last row, query or
// column is staged as zero, which changes no sum, and is not written.
//
// Cost: 2 instructions of the double-precision units for each pair and column (linf 3, chi_square 13), 48
// conversions for each 512 pairs and column, 24 KiB of shared memory.
//
// `Block` gives thread(), sync() and exchange(values, apart), which swaps them with the thread whose number differs in
// that bit; the tests give one made of real threads.
#pragma once

#include "cuda/device_core.hpp"
#include "kernels/distance/canonical_step_cuda.hpp"
#include "kernels/distance/distance_task.hpp"
#include "kernels/distance/stored_four_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kPairSide = 8;  // of the pairs that sixteen threads share
inline constexpr int kTileQueries = 2 * kPairSide;
inline constexpr int kTileRows = 4 * kPairSide;
inline constexpr int kTileVectors = kTileQueries + kTileRows;
inline constexpr int kTileThreads = kTileQueries / kPairSide * (kTileRows / kPairSide) * kCanonicalLanes;
inline constexpr int kStageCols = 2 * kCanonicalLanes;
inline constexpr int kStageFours = kStageCols / 4;  // of one vector
inline constexpr int kStageRounds = kTileVectors * kStageFours / kTileThreads;
inline constexpr int kRoundVectors = kTileThreads / kStageFours;
static_assert(kRoundVectors == kTileQueries, "the first round stages the queries, the others the rows");

struct DistanceTileShared {
  alignas(16) double values[2][kTileVectors][kStageCols];
};

// The four columns that a thread brings of each of its vectors: of a query and two rows.
class TileStager {
 public:
  template <typename Block>
  KITH_DEVICE_INLINE TileStager(const Block& block, const DistanceTask& task, int64_t first_query, int64_t first_row)
      : cols_(task.cols), four_(block.thread() % kStageFours), vector_(block.thread() / kStageFours) {
    KITH_UNROLL
    for (int round = 0; round < kStageRounds; ++round) {
      const DeviceRowsView& source = round == 0 ? task.queries : task.rows;
      const int64_t i = round == 0 ? first_query + vector_ : first_row + (round - 1) * kRoundVectors + vector_;
      rows_[round] = row_bytes_at(source, i);
      scales_[round] = task.kind == KeyKind::cosine && i < source.count ? source.inverse_norms[i] : 1.0;
    }
    dtypes_[0] = task.queries.dtype;
    dtypes_[1] = task.rows.dtype;
    aligned_[0] = fours_aligned(task.queries);
    aligned_[1] = fours_aligned(task.rows);
  }

  KITH_DEVICE_INLINE void fetch(int64_t first_col) {
    const int64_t column = first_col + four_ * 4;
    KITH_UNROLL
    for (int round = 0; round < kStageRounds; ++round) {
      const int side = round == 0 ? 0 : 1;
      fours_[round] = rows_[round] == nullptr ? StoredFour{}
                                              : fetch_four(rows_[round], dtypes_[side], column, cols_, aligned_[side]);
    }
  }

  KITH_DEVICE_INLINE void store(bool scaled, double (&stage)[kTileVectors][kStageCols]) const {
    KITH_UNROLL
    for (int round = 0; round < kStageRounds; ++round) {
      double* const place = stage[round * kRoundVectors + vector_] + four_ * 4;
      const DType dtype = dtypes_[round == 0 ? 0 : 1];
      double values[4];
      widen_four(fours_[round], dtype, values);
      if (scaled) {
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) values[i] = values[i] * scales_[round];
      }
      // Threads four apart write to the same banks: they take turns.
      const bool later = (four_ & 4) != 0;
      KITH_UNROLL
      for (int turn = 0; turn < 2; ++turn) {
        const bool second = (turn == 1) != later;
        store_vector(place + (second ? 2 : 0), second ? Two{{values[2], values[3]}} : Two{{values[0], values[1]}});
      }
    }
  }

 private:
  struct alignas(16) Two {
    double values[2];
  };

  const int64_t cols_;
  const int four_;
  const int vector_;
  const std::byte* rows_[kStageRounds];
  double scales_[kStageRounds];
  StoredFour fours_[kStageRounds];
  DType dtypes_[2];
  bool aligned_[2];
};

// Of kCount sums of a thread those of the lower or the upper half remain, joined with the lane `apart` of it.
template <KeyKind kStep, int kCount, int kSums, typename Block>
KITH_DEVICE_INLINE void join_lanes(const Block& block, double (&sums)[kSums], int apart) {
  constexpr int kHalf = kCount / 2;
  const bool upper = (block.thread() & apart) != 0;
  double others[kHalf];
  KITH_UNROLL
  for (int i = 0; i < kHalf; ++i) {
    others[i] = upper ? sums[i] : sums[kHalf + i];
    sums[i] = upper ? sums[kHalf + i] : sums[i];
  }
  block.exchange(others, apart);
  KITH_UNROLL
  for (int i = 0; i < kHalf; ++i) {
    if constexpr (kStep == KeyKind::linf) {
      sums[i] = upper ? canonical_join<kStep>(others[i], sums[i]) : canonical_join<kStep>(sums[i], others[i]);
    } else {
      sums[i] = sums[i] + others[i];
    }
  }
}

// Writes keys of queries first_query.. and rows first_row..; all of the block's threads call it. A second call may
// follow after a sync.
template <KeyKind kStep, typename Block>
KITH_DEVICE_INLINE void distance_tile(const Block& block, DistanceTileShared& shared, const DistanceTask& task,
                                      int64_t first_query, int64_t first_row) {
  const int lane = block.thread() % kCanonicalLanes;
  const int group = block.thread() / kCanonicalLanes;
  const int query_in_tile = group / (kTileRows / kPairSide) * kPairSide;
  const int row_in_tile = group % (kTileRows / kPairSide) * kPairSide;
  const bool scaled = task.kind == KeyKind::cosine;

  double sums[kPairSide * kPairSide] = {};
  TileStager stager(block, task, first_query, first_row);
  stager.fetch(0);
  stager.store(scaled, shared.values[0]);
  if (kStageCols < task.cols) stager.fetch(kStageCols);
  block.sync();
  int buffer = 0;
  // Values have the whole of a stage's time to come.
  for (int64_t first_col = 0; first_col < task.cols; first_col += kStageCols) {
    if (first_col + kStageCols < task.cols) stager.store(scaled, shared.values[1 - buffer]);
    if (first_col + 2 * kStageCols < task.cols) stager.fetch(first_col + 2 * kStageCols);
    const int slabs = task.cols - first_col > kCanonicalLanes ? 2 : 1;
    const double* const queries = shared.values[buffer][query_in_tile] + lane;
    const double* const rows = shared.values[buffer][kTileQueries + row_in_tile] + lane;
    for (int slab = 0; slab < slabs; ++slab) {
      double q[kPairSide];
      KITH_UNROLL
      for (int i = 0; i < kPairSide; ++i) q[i] = queries[i * kStageCols + slab * kCanonicalLanes];
      KITH_UNROLL
      for (int j = 0; j < kPairSide; ++j) {
        const double x = rows[j * kStageCols + slab * kCanonicalLanes];
        KITH_UNROLL
        for (int i = 0; i < kPairSide; ++i) {
          double& sum = sums[i * kPairSide + j];
          sum = canonical_step_cuda<kStep>(sum, q[i], x);
        }
      }
    }
    buffer = 1 - buffer;
    block.sync();
  }

  join_lanes<kStep, 64>(block, sums, 8);
  join_lanes<kStep, 32>(block, sums, 4);
  join_lanes<kStep, 16>(block, sums, 2);
  join_lanes<kStep, 8>(block, sums, 1);
  const int64_t query = first_query + query_in_tile + lane / 2;
  const int64_t row = first_row + row_in_tile + lane % 2 * 4;
  if (query >= task.queries.count) return;
  uint32_t* const place = task.keys + query * task.stride + row;
  Four<uint32_t> keys;
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) {
    keys.values[i] = row + i < task.rows.count ? written_key(task, key_of_sum(task, sums[i], query, row + i)) : 0;
  }
  if (row + 4 <= task.rows.count && is_aligned(place, sizeof keys)) {
    return store_vector(place, keys);
  }
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (row + i < task.rows.count) place[i] = keys.values[i];
  }
}

}  // namespace kith
