// What the kernels that search for codes work with: plain data in device memory.
//
// Three kernels do whole searches of rows, start, rounds and all, and give the same codes as the CPU (icm_engine.hpp):
//
//   direct    exact costs of all codewords in float64: any row, any number of columns, any GPU
//   tables    sums of rounded inner products that are looked up (pairwise_tables.hpp), and exact costs of what these
//             cannot rule out: rows on the grid whose terms fit 16 bits
//   products  residuals times the book in halves on Hopper's matrix units, and exact costs of what these cannot rule
//             out: rows on the grid, up to kProductMostCols columns (icm_products_kernel_cuda.hpp)
//
// The last moves and scales: a codeword less the mean of its book, a row less all means, both times a power of two
// such that values are multiples of 2^-9 below 2^15. Differences of such are exact in f32, halves of them are never
// subnormal, and residuals are what they were.
#pragma once

#include "quantize/additive/code_draws.hpp"
#include "quantize/additive/codebooks.hpp"
#include "quantize/additive/pairwise_tables.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

inline constexpr int kProductWords = 256;         // of a book, the last ones perhaps of no use
inline constexpr int64_t kProductMostBooks = 64;  // codes of a block's rows lie in shared memory
inline constexpr int kProductChunkCols = 64;
inline constexpr int kProductChunkBytes = kProductWords * 2 * kProductChunkCols;
inline constexpr int kProductTileRows = 128;  // that a block searches for

constexpr int product_chunks(int64_t cols) {
  return static_cast<int>((cols + kProductChunkCols - 1) / kProductChunkCols);
}
constexpr int64_t product_cols(int64_t cols) { return int64_t{product_chunks(cols)} * kProductChunkCols; }

// How a block of the search by products uses its shared memory. A chunk of a book, and a chunk of what is left of the
// block's rows, take the same: six of both fit, whatever the number of books. Books come through a ring of some stages;
// what is left of the rows has the other places, and past these it lies in device memory (IcmRows::residuals).
struct ProductLayout {
  int chunks = 1;         // of a row, 64 columns each
  int stages = 4;         // of the ring
  int shared_chunks = 1;  // of what is left of the rows
};

inline constexpr int kProductPlaces = 6;  // for chunks, in shared memory
inline constexpr int kProductMostStages = 4;
// Two chunks of up to 128 columns are multiplied at a time: a ring of four brings two while two are used. Of wider rows
// what is left comes from the second-level cache, which the rows in flight hardly fit: one chunk comes while one is
// used, and the other four places are worth more to what is left (bench/results/h200/lsq_cuda.txt).
constexpr ProductLayout product_layout(int64_t cols) {
  ProductLayout layout;
  layout.chunks = product_chunks(cols);
  layout.stages = layout.chunks <= 2 ? kProductMostStages : 2;
  const int shared = kProductPlaces - layout.stages;
  layout.shared_chunks = layout.chunks < shared ? layout.chunks : shared;
  return layout;
}
// Values of IcmRows::residuals.
constexpr int64_t product_residuals(int64_t cols, int64_t rows) {
  const ProductLayout layout = product_layout(cols);
  const int64_t tiles = (rows + kProductTileRows - 1) / kProductTileRows;
  return tiles * kProductTileRows * kProductChunkCols * (layout.chunks - layout.shared_chunks);
}

// How far a row's value may lie behind the best one and its codeword still be the nearest: constant + norm (linear +
// norm quadratic), where the norm is that of the rounded row plus `rounding`.
struct BookWindow {
  float rounding = 0;
  float constant = 0;
  float linear = 0;
  float quadratic = 0;
};

struct IcmBooks {
  int64_t books = 0;
  int bits = 8;
  int64_t cols = 0;
  // Moved by their means, on the grid (search_books.hpp).
  const float* words = nullptr;    // books x words x cols
  const float* columns = nullptr;  // books x cols x words
  const float* means = nullptr;    // books x cols
  const double* origin = nullptr;  // cols: what rows are moved by
  // Moved and scaled; null where products are of no use.
  const float* centred = nullptr;       // books x kProductWords x product_cols
  const std::byte* tiles = nullptr;     // the same as halves, chunks of a book one after the other
  const float* terms = nullptr;         // books x kProductWords: - |c|^2 / 2, far below for what is never the first
  const BookWindow* windows = nullptr;  // books
  const float* centre = nullptr;        // product_cols: all means
  float scale = 1;                      // of values
  double unscale = 1;                   // of their squares, back
  float tiny = 0;                       // scaled squares that are no further apart may be the same keys
};

// Where the forms of the books that products take are made.
struct ProductBooks {
  float* centred = nullptr;  // zeros, as tiles and squares are
  std::byte* tiles = nullptr;
  float* terms = nullptr;
  BookWindow* windows = nullptr;
  float* centre = nullptr;
  double* squares = nullptr;  // books x 2: scratch
  double scale = 1;
};

// Pairwise tables and what unary ones are made with; null where there are none.
struct IcmTables {
  const int16_t* pairs = nullptr;      // books x books x words x width
  const float* moved = nullptr;        // books x words x cols: codewords less their means
  const float* squares = nullptr;      // books x words: their squared norms
  const float* origin = nullptr;       // cols: what rows are moved by
  const TableScale* scales = nullptr;  // books
  int64_t width = 0;
  double norms = 0;
};

struct IcmRows {
  int64_t count = 0;
  float* values = nullptr;     // count x cols: on the grid where they fit there
  float* centred = nullptr;    // count x product_cols, where there are products
  float* residuals = nullptr;  // product_residuals(), likewise: scratch
  uint8_t* fits = nullptr;     // 1: of the products or tables, where there are such
  int16_t* unary = nullptr;    // count x books x width, where there are tables
  int16_t* windows = nullptr;  // count x books, likewise; below 0: terms do not fit
  double* norms = nullptr;     // count, likewise
  int64_t* numbers = nullptr;  // for their draws
  uint8_t* codes = nullptr;    // count x books
  float* costs = nullptr;      // count, or null
};

enum class IcmStart : uint8_t { given, random, greedy };

// A step of a round: which book, and when in the round its last step was; 0: never. Step i is at time i + 2.
struct IcmStep {
  int book = 0;
  int before = 0;
};

struct IcmRun {
  IcmStart start = IcmStart::given;
  Perturbation perturbation;
  int64_t first_round = 0;
  int rounds = 0;
  int steps = 0;                      // of a round
  const IcmStep* schedule = nullptr;  // of the first round
  int schedule_stride = 0;            // to the next one's; 0: all are alike
};

// Rows that the direct search takes: all, or those listed, `*count` of them.
struct IcmList {
  uint32_t* rows = nullptr;
  uint32_t* count = nullptr;
};

// How rows are prepared.
struct IcmGrid {
  double shift = 0;  // search_books.hpp
  double most = 0;
  int64_t first_number = 0;
  bool by_content = false;
};

// All enqueue.
//
// The books' columns side by side, and their forms for products, from books.words and books.means.
void launch_book_columns(const IcmBooks& books, float* columns, cudaStream_t stream);
void launch_product_books(const IcmBooks& books, const ProductBooks& made, cudaStream_t stream);

// Rows, given as f32 in rows.values, to what the searches take: values, centred, fits and numbers are written. Rows
// that do not fit are listed, where there is a list.
void launch_prepare_icm_rows(const IcmBooks& books, const IcmGrid& grid, const IcmRows& rows, const IcmList& list,
                             cudaStream_t stream);

void launch_icm_direct(const IcmBooks& books, const IcmRows& rows, const IcmList& list, const IcmRun& run,
                       double* scratch, int blocks, cudaStream_t stream);
// What a block of it wants of `scratch`, in doubles: nothing where shared memory will do.
int64_t icm_direct_scratch(int64_t cols);

// The unary tables of rows that fit. Rows whose terms do not are listed, and fit no more.
void launch_unary_tables(const IcmBooks& books, const IcmTables& tables, const IcmRows& rows, const IcmList& list,
                         cudaStream_t stream);
void launch_icm_tables(const IcmBooks& books, const IcmTables& tables, const IcmRows& rows, const IcmRun& run,
                       int multiprocessors, cudaStream_t stream);

void launch_icm_products(const IcmBooks& books, const IcmRows& rows, const IcmRun& run, cudaStream_t stream);

}  // namespace kith
