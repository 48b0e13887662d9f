// Makes the forms of codebooks for the search kernels, from codewords and means on the device: transposed for the
// direct search; moved, scaled and rounded to halves for products, with bounds of the rounding errors.
//
// Cost: some 20 bytes read and written per value of the codebooks.
//
#include "quantize/additive/icm_task_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/warp.hpp"
#include "kernels/matrix/candidate_window.hpp"

#include <cuda_fp16.h>

#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr float kNeverFirst = -3e38f;  // the term of what is never the first

__global__ void __launch_bounds__(kThreads) book_columns_kernel(IcmBooks books, float* columns) {
  const int64_t words = int64_t{1} << books.bits;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= books.books * books.cols * words) return;
  const int64_t k = at / (books.cols * words);
  const int64_t c = at / words % books.cols;
  columns[at] = books.words[(k * words + at % words) * books.cols + c];
}

__global__ void __launch_bounds__(kThreads) book_centre_kernel(IcmBooks books, float* centre) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (c >= books.cols) return;
  float sum = 0;
  for (int64_t k = 0; k < books.books; ++k) sum += books.means[k * books.cols + c];  // exact
  centre[c] = sum;
}

// Where a column of a codeword lies in its book's tile: chunks of 64 columns, rows of 128 bytes whose 16-byte units are
// swizzled by the row's number modulo 8, and columns permuted within 16 so that a lane of the matrix unit, which has
// places 2 t, 2 t + 1, 2 t + 8 and 2 t + 9, gets columns 4 t to 4 t + 3.
__device__ int64_t tile_place(int64_t word, int64_t column) {
  const int64_t chunk = column / kProductChunkCols;
  const int64_t in_step = column % 16;
  const int64_t unit = column % kProductChunkCols / 16 * 2 + in_step % 4 / 2;
  return chunk * kProductChunkBytes + word * 128 + (unit ^ word % 8) * 16 + in_step / 4 * 4 + in_step % 2 * 2;
}

// Whether a codeword equals an earlier one, which wins then. All lanes of a warp take part.
__device__ bool is_repeated(const float* book, int64_t cols, int word, int lane) {
  const auto* const values = reinterpret_cast<const uint32_t*>(book);
  bool equal = false;
  for (int other = lane; other < word && !equal; other += 32) {
    int64_t c = 0;
    while (c < cols && values[other * cols + c] == values[word * cols + c]) ++c;
    equal = c == cols;
  }
  return __any_sync(kAllLanes, equal);
}

// Squares are not negative, so their bits have the same order.
__device__ void keep_largest(double square, double* largest) {
  atomicMax(reinterpret_cast<unsigned long long*>(largest),
            static_cast<unsigned long long>(__double_as_longlong(square)));
}

// A warp per codeword, including the padding of books with fewer bits, whose values are zero already.
__global__ void __launch_bounds__(kThreads) product_words_kernel(IcmBooks books, ProductBooks made) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const int64_t k = at / kProductWords;
  const auto j = static_cast<int>(at % kProductWords);
  const int64_t words = int64_t{1} << books.bits;
  if (j >= words) {
    if (lane == 0) made.terms[at] = kNeverFirst;
    return;
  }
  const int64_t padded = product_cols(books.cols);
  const float* const book = books.words + k * words * books.cols;
  std::byte* const tile = made.tiles + k * kProductWords * padded * static_cast<int64_t>(sizeof(__half));
  double square = 0;
  double lost = 0;
  for (int64_t c = lane; c < books.cols; c += 32) {
    const auto value = static_cast<float>(
        static_cast<double>(book[j * books.cols + c] - books.means[k * books.cols + c]) * made.scale);
    const __half half = __float2half_rn(value);
    made.centred[at * padded + c] = value;
    *reinterpret_cast<__half*>(tile + tile_place(j, c)) = half;
    const double miss = static_cast<double>(value) - static_cast<double>(__half2float(half));
    square = fma(static_cast<double>(value), static_cast<double>(value), square);
    lost = fma(miss, miss, lost);
  }
  square = warp_sum(square);
  lost = warp_sum(lost);
  const bool repeated = is_repeated(book, books.cols, j, lane);
  if (lane != 0) return;
  made.terms[at] = repeated ? kNeverFirst : static_cast<float>(-square / 2);
  keep_largest(square, made.squares + 2 * k);
  keep_largest(lost, made.squares + 2 * k + 1);
}

// Everything is in the scaled unit. With r the row less all other codewords, moved as the book is, and c a codeword:
// the product's operands are r + e, |e| <= rounding + 2^-11 (|r| + rounding), since r is made with a rounded codeword,
// and c + d, |d| <= rounding. A sum of n products on the matrix units is within n 2^-21 of the magnitudes
// (candidate_window.hpp). Two values that differ by no more than twice all that may be in either order; so may keys
// that are equal once they are rounded to f32.
__device__ BookWindow window_of(double norm, double rounding, int64_t cols, double scale) {
  constexpr double kHalf = 0x1p-11 * 1.01;
  const double sum = (static_cast<double>(cols) + 16) * kSumLoss * 1.01;
  const double rounded_norm = norm + rounding;
  const double square = norm * norm / 2;
  const double constant =
      rounding * (1 + kHalf) * rounded_norm + sum * (rounding * rounded_norm + square) + square * 0x1p-22;
  const double linear = kHalf * rounded_norm + rounding + sum * rounded_norm;
  BookWindow window;
  constexpr double kUp = 1.001;
  window.rounding = static_cast<float>(rounding * kUp);
  window.constant = static_cast<float>((2.1 * constant + 2 * kKeyLoss * norm * norm + kTinyKey * scale * scale) * kUp);
  window.linear = static_cast<float>((2.1 * linear + 4 * kKeyLoss * norm) * kUp);
  window.quadratic = static_cast<float>(2 * kKeyLoss * kUp);
  return window;
}

__global__ void __launch_bounds__(kThreads) book_windows_kernel(IcmBooks books, ProductBooks made) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= books.books) return;
  made.windows[k] = window_of(sqrt(made.squares[2 * k]), sqrt(made.squares[2 * k + 1]), books.cols, made.scale);
}

}  // namespace

void launch_book_columns(const IcmBooks& books, float* columns, cudaStream_t stream) {
  launch(book_columns_kernel, Grid::over((books.books << books.bits) * books.cols, kThreads), stream, books, columns);
}

void launch_product_books(const IcmBooks& books, const ProductBooks& made, cudaStream_t stream) {
  launch(book_centre_kernel, Grid::over(books.cols, kThreads), stream, books, made.centre);
  launch(product_words_kernel, Grid::of(books.books * kProductWords / kWarps, kThreads), stream, books, made);
  launch(book_windows_kernel, Grid::over(books.books, kThreads), stream, books, made);
}

}  // namespace kith
