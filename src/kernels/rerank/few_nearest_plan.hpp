// Which searches of few queries one launch does (few_nearest_cuda.hpp, screened_nearest_cuda.hpp), and the memory it
// takes. Pure arithmetic, so that any machine can plan for any GPU.
#pragma once

#include "core/divide.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/byte_window.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

inline constexpr int64_t kFewNearestQueries = 4;
inline constexpr int64_t kFewNearestMostK = 256;
inline constexpr int kFewNearestThreads = 256;  // threads per block
inline constexpr int kFewNearestWarps = kFewNearestThreads / 32;
inline constexpr int kFewNearestRows = 64;           // rows per block at a time
inline constexpr int kFewNearestBlocksTogether = 4;  // resident per multiprocessor, limited by registers
inline constexpr int kFewNearestRoom = 2048;         // entries in the last block's list
inline constexpr int kFewNearestMostBlocks = 640;    // the last block holds all warps' minima in registers

// Bytes of the queries in shared memory, as doubles.
constexpr int64_t few_nearest_query_bytes(int64_t queries, int64_t cols) {
  return queries * round_up(cols, int64_t{kCanonicalLanes}) * static_cast<int64_t>(sizeof(double));
}

constexpr bool suits_few_nearest(KeyKind kind, int64_t queries, int64_t cols, int64_t k) {
  constexpr int64_t kMostShared = int64_t{48} << 10;
  return is_product(kind) && queries >= 1 && queries <= kFewNearestQueries && k >= 1 && k <= kFewNearestMostK &&
         cols >= 1 && few_nearest_query_bytes(queries == 3 ? 4 : queries, cols) <= kMostShared;
}

inline int64_t few_nearest_blocks(int64_t rows, int multiprocessors) {
  return std::min<int64_t>({divide_up(rows, int64_t{kFewNearestRows}),
                            int64_t{kFewNearestBlocksTogether} * multiprocessors, kFewNearestMostBlocks});
}

// Keys of scratch memory: one minimum per warp.
inline int64_t few_nearest_minima(int64_t queries, int64_t rows, int multiprocessors) {
  return queries * few_nearest_blocks(rows, multiprocessors) * kFewNearestWarps;
}

// The nearest rows of one query by a copy in bytes.
inline constexpr int kScreenedRows = 128;          // rows per block at a time
inline constexpr int kScreenedBlocksTogether = 4;  // resident per multiprocessor, limited by registers

constexpr bool suits_byte_screen(KeyKind kind, int64_t cols, int64_t k) {
  return is_product(kind) && cols >= 1 && cols <= kByteScreenMostCols && k >= 1 && k <= kFewNearestMostK;
}

inline int64_t screened_blocks(int64_t rows, int multiprocessors) {
  return std::min<int64_t>(
      {divide_up(rows, int64_t{kScreenedRows}), int64_t{kScreenedBlocksTogether} * multiprocessors,
                            kFewNearestMostBlocks});
}

// Floats of scratch memory besides one per row: the least bounds of each warp.
inline int64_t screened_minima(int64_t rows, int multiprocessors) {
  return screened_blocks(rows, multiprocessors) * 2 * kFewNearestWarps;
}

}  // namespace kith
