// The product of a tile of a join: 64 NEW samples with 128 samples, whose operands lie anywhere, on the matrix units of
// every GPU from compute capability 8.0 on.
//
// Operands are gathered in chunks of 128 bytes, as they lie (operand_layout.hpp), two chunks at a time, and swizzled anew
// by their place in the tile. A warp has 16 of the 128 columns and all rows, of which those past the last are left out.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/ptx.hpp"
#include "graph/nn_descent/join_cuda.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kJoinThreads = 256;
inline constexpr int kJoinRows = 64;
inline constexpr int kJoinColumns = kJoinThreads / 32 * 16;
inline constexpr int kJoinStageChunks = 2;
inline constexpr int kJoinStageBytes = kJoinStageChunks * kChunkBytes;  // of a row

// What a thread holds: of row group m and column group n, as mma.sync gives them.
using JoinProducts = float[kJoinRows / 16][2][4];

// The row and the column of a value, within the tile.
__device__ inline int product_row(int m, int i) {
  return m * 16 + static_cast<int>(threadIdx.x) % 32 / 4 + (i >= 2 ? 8 : 0);
}
__device__ inline int product_column(int n, int i) {
  return static_cast<int>(threadIdx.x) / 32 * 16 + n * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + i % 2;
}

// Brings chunks first, first + 1, ... of so many rows to shared memory, chunk by chunk; `capacity` rows fit.
__device__ inline void gather_operands(const JoinOperands& operands, const uint32_t* ids, int count, int64_t first_chunk,
                                       int chunks, int capacity, uint32_t shared) {
  constexpr int kUnits = kChunkBytes / 16;
  const int units = chunks * kUnits;
  for (int i = static_cast<int>(threadIdx.x); i < count * units; i += kJoinThreads) {
    const int place = i / units;
    const int chunk = i % units / kUnits;
    const int unit = i % kUnits;
    const auto row = static_cast<int64_t>(ids[place]);
    const std::byte* const from = operands.halves + operand_offset(row, (first_chunk + chunk) * kChunkBytes + unit * 16,
                                                                   operands.chunks);
    ptx::copy_async_16(
        shared + static_cast<uint32_t>((chunk * capacity + place) * kChunkBytes + ((unit ^ place % 8) * 16)), from);
  }
}

struct JoinTile {
  const uint32_t* rows = nullptr;     // numbers
  const uint32_t* columns = nullptr;
  int row_count = 0;
  int column_count = 0;
  bool rows_first = false;  // the rows are the first columns
};

// All threads call it; `shared` is free, and is again when it returns. Values past the tile's rows and columns are
// anything.
__device__ inline void multiply_tile(const JoinOperands& operands, int64_t cols, const JoinTile& tile, uint32_t shared,
                                     JoinProducts& products) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const uint32_t columns_at = shared;
  const uint32_t rows_at = tile.rows_first ? shared : shared + kJoinColumns * kJoinStageBytes;
  const int row_capacity = tile.rows_first ? kJoinColumns : kJoinRows;
  KITH_UNROLL
  for (int m = 0; m < kJoinRows / 16; ++m) {
    KITH_UNROLL
    for (int n = 0; n < 2; ++n) {
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) products[m][n][i] = 0;
    }
  }
  const auto steps = static_cast<int>(divide_up(cols * 2, int64_t{kStepBytes}));
  for (int64_t first = 0; first < operands.chunks; first += kJoinStageChunks) {
    const int chunks = static_cast<int>(operands.chunks - first < kJoinStageChunks ? operands.chunks - first
                                                                                   : kJoinStageChunks);
    gather_operands(operands, tile.columns, tile.column_count, first, chunks, kJoinColumns, columns_at);
    if (!tile.rows_first) {
      gather_operands(operands, tile.rows, tile.row_count, first, chunks, kJoinRows, rows_at);
    }
    ptx::copy_async_commit();
    ptx::copy_async_wait<0>();
    __syncthreads();
    const int left = steps - static_cast<int>(first) * kChunkSteps;
    const int here = left < chunks * kChunkSteps ? left : chunks * kChunkSteps;
    if (warp * 16 < tile.column_count) {
      for (int step = 0; step < here; ++step) {
        const int chunk = step / kChunkSteps;
        const int unit = step % kChunkSteps * 2;
        const auto address = [&](uint32_t block, int capacity, int row, int part) {
          return block +
                 static_cast<uint32_t>((chunk * capacity + row) * kChunkBytes + (((unit + part) ^ row % 8) * 16));
        };
        uint32_t b[4];
        ptx::load_matrices(b, address(columns_at, kJoinColumns, warp * 16 + lane % 8 + lane / 16 * 8, lane / 8 % 2));
        KITH_UNROLL
        for (int m = 0; m < kJoinRows / 16; ++m) {
          if (m * 16 >= tile.row_count) break;
          uint32_t a[4];
          ptx::load_matrices(a, address(rows_at, row_capacity, m * 16 + lane % 16, lane / 16));
          ptx::multiply_add(products[m][0], a, b);
          ptx::multiply_add(products[m][1], a, b + 2);
        }
      }
    }
    __syncthreads();  // all have read
  }
}

}  // namespace kith
