// The product of a tile of a join: 64 NEW samples with 128 samples, whose operands are at arbitrary places, on the
// tensor cores of all GPUs from compute capability 8.0 on.
//
// Operands are gathered in chunks of 128 bytes in their stored layout (operand_layout.hpp), two chunks at a time, and
// swizzled again by their place in the tile. A warp multiplies 16 columns with all valid rows. A block of 256 threads
// computes all columns of a tile at once. A block of 128 computes half of them: more such blocks run concurrently, and
// if a row is only two chunks, products are cheap to recompute.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/ptx.hpp"
#include "graph/build/nn_descent/join_cuda.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kJoinRows = 64;
inline constexpr int kJoinColumns = 128;
// Columns of a tile that a block multiplies at a time.
template <int kThreads>
inline constexpr int kPartColumns = kThreads / 32 * 16;
inline constexpr int kJoinStageChunks = 2;
inline constexpr int kJoinStageBytes = kJoinStageChunks * kChunkBytes;  // of a row

// A thread's values of row group m and column group n, in the layout of mma.sync. Value i is in row i / 2 of the
// thread's two rows of the group, and in column i % 2.
inline constexpr int kRowGroups = kJoinRows / 16;
using JoinProducts = float[kRowGroups][2][4];

// The row of a value within the tile, the column within the block's part of it.
__device__ inline int product_row(int m, int half) {
  return m * 16 + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * half;
}
__device__ inline int product_column(int n, int side) {
  return static_cast<int>(threadIdx.x) / 32 * 16 + n * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + side;
}

struct JoinTile {
  const uint32_t* rows = nullptr;     // numbers, in shared memory
  const uint32_t* columns = nullptr;
  int row_count = 0;
  int column_count = 0;
  bool rows_first = false;   // the rows are the first columns
  bool rows_behind = false;  // the rows follow kJoinRows columns, all of them valid; else they have their own memory

  __device__ int row_capacity() const { return rows_first || rows_behind ? kJoinColumns : kJoinRows; }
  // From the first column on, in bytes.
  __device__ uint32_t rows_at() const {
    return rows_first ? 0 : rows_behind ? kJoinRows * kChunkBytes : kJoinColumns * kJoinStageBytes;
  }
};

// Copies some chunks of each row to shared memory, chunk by chunk; `capacity` rows fit. Eight threads copy a chunk.
template <int kThreads>
__device__ inline void gather_operands(const JoinOperands& operands, const uint32_t* ids, int count,
                                       int64_t first_chunk, int chunks, int capacity, uint32_t shared) {
  constexpr int kUnits = kChunkBytes / 16;
  const auto unit = static_cast<uint32_t>(threadIdx.x) % kUnits;
#pragma unroll 1
  for (int place = static_cast<int>(threadIdx.x) / kUnits; place < count; place += kThreads / kUnits) {
    const uint32_t row = ids[place];
    const std::byte* from =
        operands.halves + (static_cast<int64_t>(row / kOperandTile) * operands.chunks + first_chunk) * kTileChunkBytes +
        row % kOperandTile * kChunkBytes + ((unit ^ row % 8) * 16);
    const auto at = static_cast<uint32_t>(place);
    uint32_t to = shared + at * kChunkBytes + ((unit ^ at % 8) * 16);
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      ptx::copy_async_16(to, from);
      to += static_cast<uint32_t>(capacity * kChunkBytes);
      from += kTileChunkBytes;
    }
  }
}

// Enqueues the copies of a stage, which begins with a chunk.
template <int kThreads>
__device__ inline void gather_stage(const JoinOperands& operands, const JoinTile& tile, int64_t first,
                                    uint32_t shared) {
  const int chunks =
      static_cast<int>(operands.chunks - first < kJoinStageChunks ? operands.chunks - first : kJoinStageChunks);
  gather_operands<kThreads>(operands, tile.columns, tile.column_count, first, chunks, kJoinColumns, shared);
  if (!tile.rows_first) {
    gather_operands<kThreads>(operands, tile.rows, tile.row_count, first, chunks, tile.row_capacity(),
                              shared + tile.rows_at());
  }
  ptx::copy_async_commit();
}

__device__ inline void clear_products(JoinProducts& products) {
  KITH_UNROLL
  for (int m = 0; m < kRowGroups; ++m) {
    KITH_UNROLL
    for (int n = 0; n < 2; ++n) {
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) products[m][n][i] = 0;
    }
  }
}

// Multiplies kRows row groups: a number known before the loops, whose bodies are straight.
template <int kRows>
__device__ __forceinline__ void multiply_chunks(uint32_t a_at, uint32_t a_chunk, uint32_t b_at, int chunks,
                                                JoinProducts& products) {
#pragma unroll 1
  for (int chunk = 0; chunk < chunks; ++chunk) {
    KITH_UNROLL
    for (int step = 0; step < kChunkSteps; ++step) {
      uint32_t b[4];
      ptx::load_matrices(b, b_at ^ static_cast<uint32_t>(step * kStepBytes));
      KITH_UNROLL
      for (int m = 0; m < kRows; ++m) {
        uint32_t a[4];
        ptx::load_matrices(
            a, (a_at ^ static_cast<uint32_t>(step * kStepBytes)) + static_cast<uint32_t>(m * 16 * kChunkBytes));
        ptx::multiply_add(products[m][0], a, b);
        ptx::multiply_add(products[m][1], a, b + 2);
      }
    }
    b_at += kJoinColumns * kChunkBytes;
    a_at += a_chunk;
  }
}

// Adds the products of a stage that has come, whole chunks, which zeros fill up: columns from first_column of the tile
// on. Values past the tile's rows and columns are anything.
__device__ inline void multiply_stage(const JoinTile& tile, int first_column, int chunks, uint32_t shared,
                                      JoinProducts& products) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  first_column += static_cast<int>(threadIdx.x) / 32 * 16;
  if (first_column >= tile.column_count) return;
  // Rows a multiple of 16 apart have the same swizzle: a lane's own is the same in all groups. A step is two units
  // farther, which the swizzle turns into bits that change.
  const auto b_row = static_cast<uint32_t>(first_column + lane % 8 + lane / 16 * 8);
  const auto a_row = static_cast<uint32_t>(lane % 16);
  const uint32_t b_at = shared + b_row * kChunkBytes + ((static_cast<uint32_t>(lane / 8 % 2) ^ b_row % 8) * 16);
  const uint32_t a_at =
      shared + tile.rows_at() + a_row * kChunkBytes + ((static_cast<uint32_t>(lane / 16) ^ a_row % 8) * 16);
  const auto a_chunk = static_cast<uint32_t>(tile.row_capacity() * kChunkBytes);
  static_assert(kRowGroups == 4);
  if (tile.row_count <= 16) return multiply_chunks<1>(a_at, a_chunk, b_at, chunks, products);
  if (tile.row_count <= 32) return multiply_chunks<2>(a_at, a_chunk, b_at, chunks, products);
  multiply_chunks<4>(a_at, a_chunk, b_at, chunks, products);
}

// Chunks of a stage, whose first chunk is given.
__device__ inline int stage_chunks(const JoinOperands& operands, int64_t first) {
  return static_cast<int>(operands.chunks - first < kJoinStageChunks ? operands.chunks - first : kJoinStageChunks);
}

// All stages, of which the first is on its way; all threads call it. `shared` is free again when it returns.
template <int kThreads>
__device__ inline void multiply_stages(const JoinOperands& operands, const JoinTile& tile, uint32_t shared,
                                       JoinProducts& products) {
#pragma unroll 1
  for (int64_t first = 0; first < operands.chunks; first += kJoinStageChunks) {
    if (first > 0) gather_stage<kThreads>(operands, tile, first, shared);
    ptx::copy_async_wait<0>();
    __syncthreads();
    multiply_stage(tile, 0, stage_chunks(operands, first), shared, products);
    __syncthreads();  // all have read
  }
}

}  // namespace kith
