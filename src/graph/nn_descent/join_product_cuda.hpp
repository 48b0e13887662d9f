// The product of a tile of a join: 64 NEW samples with 128 samples, whose operands lie anywhere, on the matrix units of
// every GPU from compute capability 8.0 on.
//
// Operands are gathered in chunks of 128 bytes, as they lie (operand_layout.hpp), two chunks at a time, and swizzled anew
// by their place in the tile. A warp has two groups of eight columns, far from each other, so that warps have as much to do
// where there are few, and multiplies them with all groups of sixteen rows that there are: how many is known before the
// loops, whose bodies are straight.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/ptx.hpp"
#include "graph/nn_descent/join_slots_cuda.hpp"
#include "graph/nn_descent/join_task_cuda.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kJoinThreads = 256;
inline constexpr int kJoinWarps = kJoinThreads / 32;
inline constexpr int kJoinRows = 64;
inline constexpr int kJoinColumns = 128;
inline constexpr int kJoinStageChunks = 2;
inline constexpr int kJoinStageBytes = kJoinStageChunks * kChunkBytes;  // of a row

// What a thread holds: of row group m and its warp's column group n, as mma.sync gives them. Value i lies in row i / 2 of
// the thread's two of the group, and in column i % 2.
inline constexpr int kRowGroups = kJoinRows / 16;
inline constexpr int kColumnGroups = kJoinColumns / kSampleGroup / kJoinWarps;
using JoinProducts = float[kRowGroups][kColumnGroups][4];

__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % 32; }
// The row of a value within the tile; the first column of a group of the warp's, and the column within the group.
__device__ inline int product_row(int m, int half) { return m * 16 + lane_of_thread() / 4 + 8 * half; }
__device__ inline int group_column(int n) { return (static_cast<int>(threadIdx.x) / 32 + kJoinWarps * n) * kSampleGroup; }
__device__ inline int column_in_group(int side) { return lane_of_thread() % 4 * 2 + side; }

struct JoinTile {
  const uint32_t* rows = nullptr;     // numbers, in shared memory
  const uint32_t* columns = nullptr;  // kNobody among them: nothing is brought
  int row_count = 0;
  int column_count = 0;
  bool rows_first = false;   // the rows are the first columns
  bool rows_behind = false;  // they lie behind kJoinRows columns, of which there are no more; else in a place of their own

  __device__ int row_capacity() const { return rows_first || rows_behind ? kJoinColumns : kJoinRows; }
  // From the first column on, in bytes.
  __device__ uint32_t rows_at() const {
    return rows_first ? 0 : rows_behind ? kJoinRows * kChunkBytes : kJoinColumns * kJoinStageBytes;
  }
};

// Brings some chunks of so many rows to shared memory, chunk by chunk; `capacity` rows fit. Eight threads bring a chunk.
__device__ inline void gather_operands(const JoinOperands& operands, const uint32_t* ids, int count, int64_t first_chunk,
                                       int chunks, int capacity, uint32_t shared) {
  constexpr int kUnits = kChunkBytes / 16;
  constexpr int kTogether = kJoinThreads / kUnits;  // rows
  static_assert(kTogether % 8 == 0, "a thread's places have the same swizzle");
  static_assert(kJoinStageChunks == 2);
  const auto unit = static_cast<uint32_t>(threadIdx.x) % kUnits;
  const auto first = static_cast<uint32_t>(threadIdx.x) / kUnits;
  const std::byte* const from = operands.halves + first_chunk * kTileChunkBytes;
  const int64_t tile_bytes = operands.chunks * kTileChunkBytes;
  uint32_t to = shared + first * kChunkBytes + ((unit ^ first % 8) * 16);
  const auto chunk_apart = static_cast<uint32_t>(capacity * kChunkBytes);
#pragma unroll 2
  for (int place = static_cast<int>(first); place < count; place += kTogether) {
    const uint32_t row = ids[place];
    if (row != kNobody) {
      const std::byte* const at =
          from + row / kOperandTile * tile_bytes + (row % kOperandTile * kChunkBytes | ((unit ^ row % 8) * 16));
      ptx::copy_async_16(to, at);
      if (chunks > 1) ptx::copy_async_16(to + chunk_apart, at + kTileChunkBytes);
    }
    to += kTogether * kChunkBytes;
  }
}

// Of a stage, whose first chunk is given.
__device__ inline int stage_chunks(const JoinOperands& operands, int64_t first) {
  return static_cast<int>(operands.chunks - first < kJoinStageChunks ? operands.chunks - first : kJoinStageChunks);
}

// Enqueues the copies of a stage, which begins with a chunk.
__device__ inline void gather_stage(const JoinOperands& operands, const JoinTile& tile, int64_t first, uint32_t shared) {
  const int chunks = stage_chunks(operands, first);
  gather_operands(operands, tile.columns, tile.column_count, first, chunks, kJoinColumns, shared);
  if (!tile.rows_first) {
    gather_operands(operands, tile.rows, tile.row_count, first, chunks, tile.row_capacity(), shared + tile.rows_at());
  }
  ptx::copy_async_commit();
}

__device__ inline void clear_products(JoinProducts& products) {
  KITH_UNROLL
  for (int m = 0; m < kRowGroups; ++m) {
    KITH_UNROLL
    for (int n = 0; n < kColumnGroups; ++n) {
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) products[m][n][i] = 0;
    }
  }
}

// Of so many row groups.
template <int kRows>
__device__ __forceinline__ void multiply_chunks(uint32_t a_at, uint32_t a_chunk, uint32_t b_at, int chunks,
                                                JoinProducts& products) {
#pragma unroll 1
  for (int chunk = 0; chunk < chunks; ++chunk) {
    KITH_UNROLL
    for (int step = 0; step < kChunkSteps; ++step) {
      const auto flip = static_cast<uint32_t>(step * kStepBytes);
      uint32_t b[4];
      ptx::load_matrices(b, b_at ^ flip);
      KITH_UNROLL
      for (int m = 0; m < kRows; ++m) {
        uint32_t a[4];
        ptx::load_matrices(a, (a_at ^ flip) + static_cast<uint32_t>(m * 16 * kChunkBytes));
        ptx::multiply_add(products[m][0], a, b);
        ptx::multiply_add(products[m][1], a, b + 2);
      }
    }
    b_at += kJoinColumns * kChunkBytes;
    a_at += a_chunk;
  }
}

// Adds the products of a stage that has come, whole chunks, which zeros fill up. Values past the tile's rows and columns
// are anything.
__device__ inline void multiply_stage(const JoinTile& tile, int chunks, uint32_t shared, JoinProducts& products) {
  static_assert(kColumnGroups == 2 && kRowGroups == 4);
  if (group_column(0) >= tile.column_count) return;
  const int lane = lane_of_thread();
  // Rows a multiple of 8 apart have the same swizzle: a lane's own is the same in all groups. A step is two units farther,
  // which the swizzle turns into bits that change.
  const auto b_row = static_cast<uint32_t>(group_column(lane / 16) + lane % 8);
  const auto a_row = static_cast<uint32_t>(lane % 16);
  const uint32_t b_at = shared + b_row * kChunkBytes + ((static_cast<uint32_t>(lane / 8 % 2) ^ b_row % 8) * 16);
  const uint32_t a_at =
      shared + tile.rows_at() + a_row * kChunkBytes + ((static_cast<uint32_t>(lane / 16) ^ a_row % 8) * 16);
  const auto a_chunk = static_cast<uint32_t>(tile.row_capacity() * kChunkBytes);
  if (tile.row_count <= 16) return multiply_chunks<1>(a_at, a_chunk, b_at, chunks, products);
  if (tile.row_count <= 32) return multiply_chunks<2>(a_at, a_chunk, b_at, chunks, products);
  multiply_chunks<4>(a_at, a_chunk, b_at, chunks, products);
}

// All stages, of which the first is on its way; all threads call it. What lies at `shared` may still be read by others when
// it returns.
__device__ inline void multiply_tile(const JoinOperands& operands, const JoinTile& tile, uint32_t shared,
                                     JoinProducts& products) {
  clear_products(products);
#pragma unroll 1
  for (int64_t first = 0; first < operands.chunks; first += kJoinStageChunks) {
    if (first > 0) {
      __syncthreads();  // all have read
      gather_stage(operands, tile, first, shared);
    }
    ptx::copy_async_wait<0>();
    __syncthreads();
    multiply_stage(tile, stage_chunks(operands, first), shared, products);
  }
}

}  // namespace kith
