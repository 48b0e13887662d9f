// The cores of the distance kernels: one block computes the keys of a tile of queries against a tile of rows, in one of
// three ways.
//
//   distance_tile     the canonical sums, for every kind of key that is summed in lanes
//   few_columns_tile  the same of 1 to 16 columns
//   bit_tile          the bits that differ
//
// `Block` gives thread(), sync() and exchange(values, apart), which swaps them with the thread whose number differs in
// that bit; the tests give one made of real threads.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_task.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#ifdef __CUDACC__
#include "cuda/ptx.hpp"
#endif

#include <cmath>
#include <cstdint>

namespace kith {

#ifdef __CUDACC__
// The block that runs a tile's core in a kernel.
struct TileBlock {
  __device__ __forceinline__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ void sync() const { __syncthreads(); }
  template <int kCount>
  __device__ __forceinline__ void exchange(double (&values)[kCount], int apart) const {
    KITH_UNROLL
    for (int i = 0; i < kCount; ++i) values[i] = __shfl_xor_sync(0xFFFFFFFFu, values[i], apart);
  }
};
#endif

// n / s, rounded as IEEE 754 says, for the double-precision units: what the compiler makes of a division, but for the
// branch to numbers whose quotients leave the normal range. Values are widened floats, n the square of a difference and
// s a sum of two, so that there are none: n is 0 or at least 2^-298, s at least 2^-149 and below 2^130. Without
// branches many divisions are under way at a time, where a thread has many; each takes eight instructions of these
// units.
//
// An approximate reciprocal of some 20 bits gets two steps of Newton's iteration, of third and second order, and the
// quotient one (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
// What is not finite becomes NaN, as inf / inf does; s = 0 gives NaN.
KITH_DEVICE_INLINE double float_quotient(double n, double s) {
#ifdef __CUDA_ARCH__
  double inverse = ptx::rough_inverse(s);
  double error = fma(-s, inverse, 1.0);
  error = fma(error, error, error);
  inverse = fma(inverse, error, inverse);
  error = fma(-s, inverse, 1.0);
  inverse = fma(inverse, error, inverse);
  const double quotient = n * inverse;
  return fma(inverse, fma(-s, quotient, n), quotient);
#else
  return n / s;
#endif
}

// canonical_step for kernels that hold many lanes in registers: the same bits, with a division that does not branch.
// It takes values that are scaled already.
template <KeyKind kKind>
KITH_DEVICE_INLINE double canonical_step_cuda(double lane, double q, double x) {
  if constexpr (kKind == KeyKind::chi_square) {
    const double difference = q - x;
    const double sum = q + x;
    const double more = lane + float_quotient(difference * difference, sum);
    return sum == 0.0 ? lane : more;
  } else {
    return canonical_step<kKind>(lane, q, x, 0.0, 0.0);
  }
}

// The canonical tile.
//
// Sixteen neighbouring threads share 8 x 8 pairs, a thread for each lane of the canonical sum: 64 accumulators, each
// advanced by exactly the operations of canonical.hpp, and 16 values read from shared memory for 64 steps. The tree of
// the lanes is walked at the end: with the thread 8, 4, 2 and 1 apart a thread trades half of its pairs, so that four
// finished sums are left in each. Values come through shared memory in stages of 32 columns, widened to double and, for
// cosine, scaled; the next stage is loaded while one is summed. Rows, queries and columns past the last are staged as
// zeros, which change no sum, and are not written.
//
// Cost: 2 instructions of the double-precision units for each pair and column (linf 3, chi_square 13), 48
// conversions for each 512 pairs and column, 24 KiB of shared memory.
inline constexpr int kPairSide = 8;  // sixteen threads share kPairSide x kPairSide pairs
inline constexpr int kTileQueries = 2 * kPairSide;
inline constexpr int kTileRows = 4 * kPairSide;
inline constexpr int kTileVectors = kTileQueries + kTileRows;
inline constexpr int kTileThreads = kTileQueries / kPairSide * (kTileRows / kPairSide) * kCanonicalLanes;
inline constexpr int kStageCols = 2 * kCanonicalLanes;
inline constexpr int kStageFours = kStageCols / 4;  // groups of four columns per vector and stage
inline constexpr int kStageRounds = kTileVectors * kStageFours / kTileThreads;
inline constexpr int kRoundVectors = kTileThreads / kStageFours;
static_assert(kRoundVectors == kTileQueries, "the first round stages the queries, the others the rows");

struct DistanceTileShared {
  alignas(16) double values[2][kTileVectors][kStageCols];
};

// The values a thread loads in a stage: four columns of one query and of two rows.
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

// Halves a thread's kCount sums: keeps the lower or upper half, added to those of the lane `apart` away.
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
  // Loads are issued one stage ahead.
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

// The core of the distance kernel for 1 to 16 columns: a thread holds one row in registers and loops over the queries
// of a tile in shared memory. Every lane of the canonical sum has at most one element, so the tree starts with 2, 4, 8
// or 16 lanes.
//
// Cost: rows are read once per 16 queries, keys written once; 3 double-precision instructions per pair and
// lane.
inline constexpr int kFewThreads = 128;  // threads of a block, and rows of a tile
inline constexpr int kFewQueries = 16;

template <int kLanes>
struct FewColumnsShared {
  double queries[kFewQueries][kLanes];
};

// The columns of vector i, scaled for cosine; zero where there are none.
template <int kLanes>
KITH_DEVICE_INLINE void load_few(const DistanceTask& task, const DeviceRowsView& rows, int64_t i,
                                 double (&values)[kLanes]) {
  const std::byte* const row = row_bytes_at(rows, i);
  const bool aligned = fours_aligned(rows);
  const double scale = row != nullptr && task.kind == KeyKind::cosine ? rows.inverse_norms[i] : 1.0;
  KITH_UNROLL
  for (int first = 0; first < kLanes; first += 4) {
    const bool none = row == nullptr || first >= task.cols;
    const StoredFour four = none ? StoredFour{} : fetch_four(row, rows.dtype, first, task.cols, aligned);
    double four_values[4];
    widen_four(four, rows.dtype, four_values);
    KITH_UNROLL
    for (int j = 0; j < 4 && first + j < kLanes; ++j) {
      values[first + j] = four_values[j] * scale;  // exact where nothing is scaled
    }
  }
}

// The canonical tree, starting with lanes kApart apart, in registers for any number of lanes.
template <KeyKind kStep, int kApart, int kLanes>
KITH_DEVICE_INLINE void join_tree(double (&lanes)[kLanes]) {
  KITH_UNROLL
  for (int j = 0; j < kApart; ++j) lanes[j] = canonical_join<kStep>(lanes[j], lanes[j + kApart]);
  if constexpr (kApart > 1) join_tree<kStep, kApart / 2>(lanes);
}

template <KeyKind kStep, int kLanes, typename Block>
KITH_DEVICE_INLINE void few_columns_tile(const Block& block, FewColumnsShared<kLanes>& shared, const DistanceTask& task,
                                         int64_t first_query, int64_t first_row) {
  if (block.thread() < kFewQueries) {
    load_few(task, task.queries, first_query + block.thread(), shared.queries[block.thread()]);
  }
  block.sync();
  const int64_t row = first_row + block.thread();
  if (row >= task.rows.count) return;
  double x[kLanes];
  load_few(task, task.rows, row, x);
  const int64_t left = task.queries.count - first_query;
  const int count = left < kFewQueries ? static_cast<int>(left) : kFewQueries;
  uint32_t* place = task.keys + first_query * task.stride + row;
  for (int q = 0; q < count; ++q, place += task.stride) {
    double lanes[kLanes];
    KITH_UNROLL
    for (int j = 0; j < kLanes; ++j) lanes[j] = canonical_step_cuda<kStep>(0.0, shared.queries[q][j], x[j]);
    join_tree<kStep, kLanes / 2>(lanes);
    *place = written_key(task, key_of_sum(task, lanes[0], first_query + q, row));
  }
}

// The core of the hamming kernel: one block counts the differing bits of a tile of 64 queries and 64 rows.
//
// Rows and queries come through shared memory in stages of 64 bytes, zeros past the last; a thread compares four
// queries with eight rows, 16 bytes at a time. Whole numbers are counted, so that their order does not matter, and they
// are the canonical sum as long as it is below 2^31.
//
// Cost: an exclusive or, a count and an addition for each four bytes of a pair; the counts (16 a clock on each
// multiprocessor) are the bound.
inline constexpr int kBitThreads = 128;
inline constexpr int kBitTile = 64;
inline constexpr int kBitRowThreads = 8;  // neighbouring threads, each with kBitRows rows at this distance
inline constexpr int kBitQueryThreads = 16;
inline constexpr int kBitRows = kBitTile / kBitRowThreads;
inline constexpr int kBitQueries = kBitTile / kBitQueryThreads;
inline constexpr int kBitUnits = 4;  // of 16 bytes, of a vector in a stage

using BitUnit = Four<uint32_t>;

// Padded by one unit, so that neighbouring rows are in different banks.
struct BitTileShared {
  BitUnit queries[kBitTile][kBitUnits + 1];
  BitUnit rows[kBitTile][kBitUnits + 1];
};

KITH_DEVICE_INLINE int counted_bits(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __popc(bits);
#else
  return __builtin_popcount(bits);
#endif
}

// Bytes first .. first + 15 of a row; zero past the last.
KITH_DEVICE_INLINE BitUnit load_unit(const uint8_t* row, int64_t first, int64_t cols, bool aligned) {
  BitUnit unit{};
  if (row == nullptr || first >= cols) return unit;
  if (aligned && first + 16 <= cols) return load_vector<BitUnit>(row + first);
  for (int i = 0; i < 16 && first + i < cols; ++i) {
    unit.values[i / 4] |= static_cast<uint32_t>(row[first + i]) << (i % 4 * 8);
  }
  return unit;
}

template <typename Block>
KITH_DEVICE_INLINE void stage_bits(const Block& block, const DeviceRowsView& source, int64_t first, int64_t first_col,
                                   int64_t cols, BitUnit (&stage)[kBitTile][kBitUnits + 1]) {
  const bool aligned = is_aligned(source.data, 16) && source.stride % 16 == 0;
  KITH_UNROLL
  for (int i = 0; i < kBitTile * kBitUnits / kBitThreads; ++i) {
    const int at = i * kBitThreads + block.thread();
    const int vector = at / kBitUnits;
    const int unit = at % kBitUnits;
    const auto* const row = vectors<uint8_t>(row_bytes_at(source, first + vector));
    stage[vector][unit] = load_unit(row, first_col + unit * 16, cols, aligned);
  }
}

template <typename Block>
KITH_DEVICE_INLINE void bit_tile(const Block& block, BitTileShared& shared, const DistanceTask& task,
                                 int64_t first_query, int64_t first_row) {
  const int row_thread = block.thread() % kBitRowThreads;
  const int query_thread = block.thread() / kBitRowThreads;
  int counts[kBitQueries][kBitRows] = {};
  for (int64_t first_col = 0; first_col < task.cols; first_col += kBitUnits * 16) {
    stage_bits(block, task.queries, first_query, first_col, task.cols, shared.queries);
    stage_bits(block, task.rows, first_row, first_col, task.cols, shared.rows);
    block.sync();
    const int64_t left = (task.cols - first_col + 15) / 16;
    const int units = left < kBitUnits ? static_cast<int>(left) : kBitUnits;
    for (int unit = 0; unit < units; ++unit) {
      BitUnit q[kBitQueries];
      KITH_UNROLL
      for (int i = 0; i < kBitQueries; ++i) q[i] = shared.queries[i * kBitQueryThreads + query_thread][unit];
      KITH_UNROLL
      for (int j = 0; j < kBitRows; ++j) {
        const BitUnit x = shared.rows[j * kBitRowThreads + row_thread][unit];
        KITH_UNROLL
        for (int i = 0; i < kBitQueries; ++i) {
          KITH_UNROLL
          for (int word = 0; word < 4; ++word) counts[i][j] += counted_bits(q[i].values[word] ^ x.values[word]);
        }
      }
    }
    block.sync();
  }
  KITH_UNROLL
  for (int i = 0; i < kBitQueries; ++i) {
    const int64_t query = first_query + i * kBitQueryThreads + query_thread;
    if (query >= task.queries.count) continue;
    KITH_UNROLL
    for (int j = 0; j < kBitRows; ++j) {
      const int64_t row = first_row + j * kBitRowThreads + row_thread;
      if (row >= task.rows.count) continue;
      task.keys[query * task.stride + row] = written_key(task, static_cast<float>(counts[i][j]));
    }
  }
}

}  // namespace kith
