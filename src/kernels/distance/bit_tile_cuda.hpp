// The core of the hamming kernel: one block counts the differing bits of a tile of 64 queries and 64 rows.
//
// Rows and queries come through shared memory in stages of 64 bytes, zeros past the last; a thread compares four
// queries with eight rows, 16 bytes at a time. Whole numbers are counted, so that their order does not matter, and they
// are the canonical sum as long as it is below 2^31.
//
// Cost: an exclusive or, a count and an addition for each four bytes of a pair; the counts (16 a clock on each
// multiprocessor) are the bound.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/distance/distance_task.hpp"
#include "kernels/distance/stored_four_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kBitThreads = 128;
inline constexpr int kBitTile = 64;
inline constexpr int kBitRowThreads = 8;  // threads side by side, each with kBitRows rows that lie so far apart
inline constexpr int kBitQueryThreads = 16;
inline constexpr int kBitRows = kBitTile / kBitRowThreads;
inline constexpr int kBitQueries = kBitTile / kBitQueryThreads;
inline constexpr int kBitUnits = 4;  // of 16 bytes, of a vector in a stage

using BitUnit = Four<uint32_t>;

// One unit more than there is, so that neighbouring rows lie in other banks.
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
