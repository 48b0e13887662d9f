#include "kernels/dense/cholesky_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/launch.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int kBlock = 64;
constexpr int kThreads = 256;
constexpr int kRowThreads = 64;  // of a block that solves rows
constexpr int kDepth = 16;       // of a product's step

__device__ double* row_of(const SystemOnDevice& system, int64_t row) { return system.values + row * system.size; }

// The factor of the block at (first, first), by one block of threads.
__global__ void __launch_bounds__(kThreads) factor_block_kernel(SystemOnDevice system, int64_t first, double least) {
  __shared__ double a[kBlock][kBlock + 1];
  const auto width = static_cast<int>(min(int64_t{kBlock}, system.size - first));
  const auto thread = static_cast<int>(threadIdx.x);
  for (int at = thread; at < width * width; at += kThreads) {
    a[at / width][at % width] = row_of(system, first + at / width)[first + at % width];
  }
  __syncthreads();
  for (int c = 0; c < width; ++c) {
    const double pivot = sqrt(fmax(a[c][c], least));
    __syncthreads();
    for (int r = c + thread; r < width; r += kThreads) a[r][c] = r == c ? pivot : a[r][c] / pivot;
    __syncthreads();
    const int t = thread % kBlock;
    if (t > c && t < width) {
      for (int r = c + 1 + thread / kBlock; r < width; r += kThreads / kBlock) {
        if (t <= r) a[r][t] = fma(-a[r][c], a[t][c], a[r][t]);
      }
    }
    __syncthreads();
  }
  for (int at = thread; at < width * width; at += kThreads) {
    if (at % width <= at / width) row_of(system, first + at / width)[first + at % width] = a[at / width][at % width];
  }
}

// Rows times the block's inverse, a thread for each, which has it in registers: from its first column, transposed, for
// rows below the block; from its last, as it is, for right sides on their way back. A narrow block is filled up with
// ones on the diagonal.
template <bool kBack>
__global__ void __launch_bounds__(kRowThreads)
    solve_rows_kernel(SystemOnDevice system, int64_t first, int64_t first_row, int64_t end_row) {
  __shared__ double a[kBlock][kBlock];
  const auto width = static_cast<int>(min(int64_t{kBlock}, system.size - first));
#pragma unroll 8
  for (int at = static_cast<int>(threadIdx.x); at < kBlock * kBlock; at += kRowThreads) {
    const int r = at / kBlock;
    const int c = at % kBlock;
    a[r][c] = r < width && c <= r ? row_of(system, first + r)[first + c] : r == c ? 1.0 : 0.0;
  }
  __syncthreads();
  const int64_t number = first_row + static_cast<int64_t>(blockIdx.x) * kRowThreads + threadIdx.x;
  if (number >= end_row) return;
  double* const there = row_of(system, number) + first;
  double row[kBlock];
#pragma unroll
  for (int c = 0; c < kBlock; ++c) row[c] = c < width ? there[c] : 0.0;
#pragma unroll
  for (int i = 0; i < kBlock; ++i) {
    const int c = kBack ? kBlock - 1 - i : i;
    row[c] /= a[c][c];
#pragma unroll
    for (int t = 0; t < kBlock; ++t) {
      if (kBack && t < c) row[t] = fma(-row[c], a[c][t], row[t]);
      if (!kBack && t > c) row[t] = fma(-row[c], a[t][c], row[t]);
    }
  }
#pragma unroll
  for (int c = 0; c < kBlock; ++c) {
    if (c < width) there[c] = row[c];
  }
}

struct Product {
  int64_t first = 0;  // the block's columns, which are multiplied
  int width = 0;
  int64_t row = 0;  // of what it is taken off: rows row .. end_row - 1, columns column .. end_column - 1
  int64_t end_row = 0;
  int64_t column = 0;
  int64_t end_column = 0;
};

// S[r][c] -= sum_k S[r][first + k] F(k, c), where F is S[c][first + k] on the way there, and S[first + k][c] back.
// Tiles of 64 x 64, 4 x 4 for each thread; on the way there those above the diagonal are left out.
template <bool kBack>
__global__ void __launch_bounds__(kThreads) take_off_kernel(SystemOnDevice system, Product product) {
  __shared__ double left[kDepth][kBlock + 1];
  __shared__ double right[kDepth][kBlock + 1];
  const int64_t row = product.row + static_cast<int64_t>(blockIdx.y) * kBlock;
  const int64_t column = product.column + static_cast<int64_t>(blockIdx.x) * kBlock;
  if (!kBack && row + kBlock <= column) return;
  const auto thread = static_cast<int>(threadIdx.x);
  const int y = thread / 16;
  const int x = thread % 16;
  double sums[4][4] = {};
  for (int k0 = 0; k0 < product.width; k0 += kDepth) {
    for (int at = thread; at < kBlock * kDepth; at += kThreads) {
      const int r = at / kDepth;
      const int k = at % kDepth;
      const bool inside = k0 + k < product.width;
      left[k][r] = inside && row + r < product.end_row ? row_of(system, row + r)[product.first + k0 + k] : 0.0;
      if (!kBack) {
        right[k][r] =
            inside && column + r < product.end_column ? row_of(system, column + r)[product.first + k0 + k] : 0.0;
      }
    }
    for (int at = thread; kBack && at < kBlock * kDepth; at += kThreads) {
      const int k = at / kBlock;
      const int c = at % kBlock;
      right[k][c] = k0 + k < product.width && column + c < product.end_column
                        ? row_of(system, product.first + k0 + k)[column + c]
                        : 0.0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      double l[4];
      double r[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) l[i] = left[k][y + 16 * i];
#pragma unroll
      for (int i = 0; i < 4; ++i) r[i] = right[k][x + 16 * i];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = fma(l[i], r[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t r = row + y + 16 * i;
      const int64_t c = column + x + 16 * j;
      if (r < product.end_row && c < product.end_column) row_of(system, r)[c] -= sums[i][j];
    }
  }
}

template <bool kBack>
void take_off(const SystemOnDevice& system, const Product& product, cudaStream_t stream) {
  if (product.row >= product.end_row || product.column >= product.end_column) return;
  const int64_t across = divide_up(product.end_column - product.column, int64_t{kBlock});
  const int64_t down = divide_up(product.end_row - product.row, int64_t{kBlock});
  launch(take_off_kernel<kBack>, Grid::of(across, down, kThreads), stream, system, product);
}

template <bool kBack>
void solve_rows(const SystemOnDevice& system, int64_t first, int64_t row, int64_t end_row, cudaStream_t stream) {
  if (row >= end_row) return;
  launch(solve_rows_kernel<kBack>, Grid::over(end_row - row, kRowThreads), stream, system, first, row, end_row);
}

}  // namespace

void launch_solve_positive_definite(const SystemOnDevice& system, double least, cudaStream_t stream) {
  const int64_t size = system.size;
  const int64_t rows = size + system.sides;
  for (int64_t first = 0; first < size; first += kBlock) {
    const auto width = static_cast<int>(std::min(int64_t{kBlock}, size - first));
    launch(factor_block_kernel, Grid::of(1, kThreads), stream, system, first, least);
    const int64_t behind = first + width;
    solve_rows<false>(system, first, behind, rows, stream);
    take_off<false>(system, {first, width, behind, rows, behind, size}, stream);
  }
  for (int64_t first = (size - 1) / kBlock * kBlock; first >= 0; first -= kBlock) {
    const auto width = static_cast<int>(std::min(int64_t{kBlock}, size - first));
    solve_rows<true>(system, first, size, rows, stream);
    take_off<true>(system, {first, width, size, rows, 0, first}, stream);
  }
}

}  // namespace kith
