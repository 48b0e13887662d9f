// Prepares rows for the searches for codes: moved, rounded to the codebooks' grid if they fit, numbered for random
// numbers, and moved and scaled for products. A warp per row. Cost: memory traffic; if numbers are hashes of the
// values, a dozen dependent operations per column.
//
// Unary tables (pairwise_tables.hpp) of rows on a GPU: rows times all codewords of a book in f32, rounded to 16 bits
// where they are made. A block has 64 rows and a book, a warp every eighth row, a lane every 32nd codeword.
//
// Cost: rows x codewords x cols multiply-adds in f32. Their error is that of any order of f32 sums.
#include "quantize/additive/icm_task_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "cuda/warp.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRows = 64;
constexpr int kEach = 8;    // rows, and codewords, of a thread
constexpr int kDepth = 16;  // columns at a time

__global__ void __launch_bounds__(kThreads)
    prepare_rows_kernel(IcmBooks books, IcmGrid grid, IcmRows rows, IcmList list) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const int64_t cols = books.cols;
  const int64_t padded = product_cols(cols);
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32; row < rows.count;
       row += static_cast<int64_t>(gridDim.x) * kWarps) {
    float* const values = rows.values + row * cols;
    if (lane == 0) rows.numbers[row] = grid.by_content ? content_number(values, cols) : grid.first_number + row;
    __syncwarp();  // before the values are moved
    bool holds = true;
    for (int64_t c = lane; c < cols; c += 32) {
      holds = holds && fabs(static_cast<double>(values[c]) - books.origin[c]) <= grid.most;
    }
    const bool fits = __all_sync(kAllLanes, holds);
    for (int64_t c = lane; c < cols; c += 32) {
      const double moved = static_cast<double>(values[c]) - books.origin[c];
      values[c] = static_cast<float>(fits ? moved + grid.shift - grid.shift : moved);
    }
    if (rows.centred != nullptr) {
      for (int64_t c = lane; c < padded; c += 32) {
        rows.centred[row * padded + c] = fits && c < cols ? (values[c] - books.centre[c]) * books.scale : 0.0f;
      }
    }
    __syncwarp();
    if (lane == 0) {
      rows.fits[row] = fits ? 1 : 0;
      if (!fits && list.rows != nullptr) list.rows[atomicAdd(list.count, 1u)] = static_cast<uint32_t>(row);
    }
  }
}

__global__ void __launch_bounds__(kThreads) row_norms_kernel(IcmBooks books, IcmTables tables, IcmRows rows) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32; row < rows.count;
       row += static_cast<int64_t>(gridDim.x) * kWarps) {
    double sum = 0;
    for (int64_t c = lane; c < books.cols; c += 32) {
      const auto value = static_cast<double>(rows.values[row * books.cols + c] - tables.origin[c]);
      sum = fma(value, value, sum);
    }
    sum = warp_sum(sum);
    if (lane == 0) rows.norms[row] = sqrt(sum) * (1 + 1e-9);
  }
}

__global__ void __launch_bounds__(kThreads) unary_kernel(IcmBooks books, IcmTables tables, IcmRows rows) {
  __shared__ float x[kDepth][kRows + 1];
  __shared__ float c[kDepth][kProductWords + 1];
  const auto words = 1 << books.bits;
  const auto book = static_cast<int64_t>(blockIdx.y);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kRows;
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const auto warp = static_cast<int>(threadIdx.x / 32);
  float sums[kEach][kEach] = {};
  for (int64_t from = 0; from < books.cols; from += kDepth) {
    for (int at = static_cast<int>(threadIdx.x); at < kRows * kDepth; at += kThreads) {
      const int64_t row = first + at / kDepth;
      const int64_t column = from + at % kDepth;
      const bool there = row < rows.count && column < books.cols;
      x[at % kDepth][at / kDepth] = there ? rows.values[row * books.cols + column] - tables.origin[column] : 0.0f;
    }
    for (int at = static_cast<int>(threadIdx.x); at < kProductWords * kDepth; at += kThreads) {
      const int word = at / kDepth;
      const int64_t column = from + at % kDepth;
      const bool there = word < words && column < books.cols;
      c[at % kDepth][word] = there ? tables.moved[(book * words + word) * books.cols + column] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float left[kEach];
      float right[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) left[i] = x[k][warp + kWarps * i];
#pragma unroll
      for (int j = 0; j < kEach; ++j) right[j] = c[k][lane + 32 * j];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  const TableScale scale = tables.scales[book];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int64_t row = first + warp + kWarps * i;
    if (row >= rows.count) continue;  // the same for the whole warp
    float least = HUGE_VALF;
    float most = -HUGE_VALF;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (lane + 32 * j >= words) continue;
      const float value = tables.squares[book * words + lane + 32 * j] - 2 * sums[i][j];
      sums[i][j] = value;
      least = fminf(least, value);
      most = fmaxf(most, value);
    }
    for (int apart = 16; apart > 0; apart /= 2) {
      least = fminf(least, __shfl_xor_sync(kAllLanes, least, apart));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, apart));
    }
    const float middle = 0.5f * least + 0.5f * most;
    const double window = table_window(scale, rows.norms[row], tables.norms);
    const bool fits = window <= kMostTableWindow &&
                      static_cast<double>(most) - static_cast<double>(middle) <= scale.room &&
                      static_cast<double>(middle) - static_cast<double>(least) <= scale.room;
    if (lane == 0) rows.windows[row * books.books + book] = fits ? static_cast<int16_t>(window) : int16_t{-1};
    int16_t* const unary = rows.unary + (row * books.books + book) * tables.width;
    const double inverse = 1 / scale.step;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int word = lane + 32 * j;
      if (word >= tables.width) continue;
      const double steps = (static_cast<double>(sums[i][j]) - static_cast<double>(middle)) * inverse;
      unary[word] = word >= words || !fits ? int16_t{32767} : static_cast<int16_t>(__double2int_rn(steps));
    }
  }
}

__global__ void __launch_bounds__(kThreads) list_unfit_kernel(IcmBooks books, IcmRows rows, IcmList list) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= rows.count || rows.fits[row] == 0) return;
  for (int64_t k = 0; k < books.books; ++k) {
    if (rows.windows[row * books.books + k] >= 0) continue;
    rows.fits[row] = 0;
    list.rows[atomicAdd(list.count, 1u)] = static_cast<uint32_t>(row);
    return;
  }
}

}  // namespace

void launch_prepare_icm_rows(const IcmBooks& books, const IcmGrid& grid, const IcmRows& rows, const IcmList& list,
                             cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(divide_up(rows.count, int64_t{kWarps}), 1 << 16);
  if (list.count != nullptr) fill_bytes(list.count, 0, sizeof(uint32_t), stream);
  launch(prepare_rows_kernel, Grid::of(blocks, kThreads), stream, books, grid, rows, list);
}

void launch_unary_tables(const IcmBooks& books, const IcmTables& tables, const IcmRows& rows, const IcmList& list,
                         cudaStream_t stream) {
  const int64_t norm_blocks = std::min<int64_t>(divide_up(rows.count, kWarps), 1 << 16);
  launch(row_norms_kernel, Grid::of(norm_blocks, kThreads), stream, books, tables, rows);
  const dim3 tiles(static_cast<unsigned>(divide_up(rows.count, kRows)), static_cast<unsigned>(books.books));
  launch(unary_kernel, {tiles, dim3(kThreads)}, stream, books, tables, rows);
  launch(list_unfit_kernel, Grid::over(rows.count, kThreads), stream, books, rows, list);
}

}  // namespace kith
