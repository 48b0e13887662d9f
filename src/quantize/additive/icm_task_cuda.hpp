// The data of the kernels that search for codes, in device memory.
//
// Three kernels do complete searches, from start to last round, with the same codes as the CPU (icm_engine.hpp):
//
//   direct    exact costs of all codewords in float64: any row, any number of columns, any GPU
//   tables    sums of rounded inner products from tables (pairwise_tables.hpp); exact costs of codewords that these do
//             not rule out: for rows on the grid whose terms fit 16 bits
//   products  residuals times the book in halves on Hopper's matrix units; exact costs of codewords that these do not
//             rule out: for rows on the grid, up to kProductMostCols columns (icm_products_kernel_cuda.hpp)
//
// Products work on moved and scaled values: a codeword minus the mean of its book, a row minus all means, both times a
// power of two that makes values multiples of 2^-9 below 2^15. Then differences are exact in f32, halves are never
// subnormal, and residuals do not change.
#pragma once

#include "quantize/additive/code_draws.hpp"
#include "quantize/additive/codebooks.hpp"
#include "quantize/additive/pairwise_tables.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

inline constexpr int kProductWords = 256;         // per book, padded
inline constexpr int64_t kProductMostBooks = 64;  // limit of the shared memory for the codes of a block's rows
inline constexpr int kProductChunkCols = 64;
inline constexpr int kProductChunkBytes = kProductWords * 2 * kProductChunkCols;
inline constexpr int kProductTileRows = 128;  // rows per block

constexpr int product_chunks(int64_t cols) {
  return static_cast<int>((cols + kProductChunkCols - 1) / kProductChunkCols);
}
constexpr int64_t product_cols(int64_t cols) { return int64_t{product_chunks(cols)} * kProductChunkCols; }

// The shared memory of a block of the search by products. It has places for six chunks, each of a book or of the
// block's residuals, for any number of books. Books pass through a ring of `stages` places; residuals have the others,
// and what does not fit is in device memory (IcmRows::residuals).
struct ProductLayout {
  int chunks = 1;         // of a row, 64 columns each
  int stages = 4;         // places of the ring
  int shared_chunks = 1;  // residuals in shared memory
};

inline constexpr int kProductPlaces = 6;  // chunks that fit in shared memory
inline constexpr int kProductMostStages = 4;
// Up to 128 columns two chunks are multiplied at a time: a ring of four loads two while two are used. The residuals of
// wider rows come from the second-level cache, which is hardly large enough: there one chunk is loaded while one is
// used, and the other four places are more useful for residuals (bench/results/h200/lsq_cuda.jsonl).
constexpr ProductLayout product_layout(int64_t cols) {
  ProductLayout layout;
  layout.chunks = product_chunks(cols);
  layout.stages = layout.chunks <= 2 ? kProductMostStages : 2;
  const int shared = kProductPlaces - layout.stages;
  layout.shared_chunks = layout.chunks < shared ? layout.chunks : shared;
  return layout;
}
// Number of values in IcmRows::residuals.
constexpr int64_t product_residuals(int64_t cols, int64_t rows) {
  const ProductLayout layout = product_layout(cols);
  const int64_t tiles = (rows + kProductTileRows - 1) / kProductTileRows;
  return tiles * kProductTileRows * kProductChunkCols * (layout.chunks - layout.shared_chunks);
}

// A codeword may be the nearest if its value is within constant + norm (linear + norm quadratic) of the best one, where
// the norm is that of the rounded row plus `rounding`.
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
  const double* origin = nullptr;  // cols: subtracted from rows
  // Moved and scaled; null if products are not used.
  const float* centred = nullptr;       // books x kProductWords x product_cols
  const std::byte* tiles = nullptr;     // the same as halves, chunks of a book one after the other
  const float* terms = nullptr;         // books x kProductWords: - |c|^2 / 2; for padding so small that it never wins
  const BookWindow* windows = nullptr;  // books
  const float* centre = nullptr;        // product_cols: all means
  float scale = 1;                      // of values
  double unscale = 1;                   // of their squares, back
  float tiny = 0;                       // scaled squares that differ by no more may have equal keys
};

// Output of the books' forms for products.
struct ProductBooks {
  float* centred = nullptr;  // zeros, as tiles and squares are
  std::byte* tiles = nullptr;
  float* terms = nullptr;
  BookWindow* windows = nullptr;
  float* centre = nullptr;
  double* squares = nullptr;  // books x 2: scratch
  double scale = 1;
};

// Pairwise tables, and the inputs of unary ones; null without tables.
struct IcmTables {
  const int16_t* pairs = nullptr;      // books x books x words x width
  const float* moved = nullptr;        // books x words x cols: codewords minus their means
  const float* squares = nullptr;      // books x words: their squared norms
  const float* origin = nullptr;       // cols: subtracted from rows
  const TableScale* scales = nullptr;  // books
  int64_t width = 0;
  double norms = 0;
};

struct IcmRows {
  int64_t count = 0;
  float* values = nullptr;     // count x cols: on the grid if they fit
  float* centred = nullptr;    // products: count x product_cols
  float* residuals = nullptr;  // products: product_residuals() of scratch
  uint8_t* fits = nullptr;     // products, tables: 1 for rows that they can serve
  int16_t* unary = nullptr;    // tables: count x books x width
  int16_t* windows = nullptr;  // tables: count x books; negative: terms do not fit
  double* norms = nullptr;     // tables: count
  int64_t* numbers = nullptr;  // for random numbers
  uint8_t* codes = nullptr;    // count x books
  float* costs = nullptr;      // count, or null
};

enum class IcmStart : uint8_t { given, random, greedy };

// A step of a round: its book, and the time of this book's last step in the round; 0: none. Step i is at time i + 2.
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
  int schedule_stride = 0;            // to the next round's; 0: all rounds have the same
};

// Rows that the direct search takes: all, or those listed, `*count` of them.
struct IcmList {
  uint32_t* rows = nullptr;
  uint32_t* count = nullptr;
};

// Parameters of row preparation.
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

// Prepares rows, given as f32 in rows.values, for the searches: writes values, centred, fits and numbers. Lists the
// rows that do not fit, if there is a list.
void launch_prepare_icm_rows(const IcmBooks& books, const IcmGrid& grid, const IcmRows& rows, const IcmList& list,
                             cudaStream_t stream);

void launch_icm_direct(const IcmBooks& books, const IcmRows& rows, const IcmList& list, const IcmRun& run,
                       double* scratch, int blocks, cudaStream_t stream);
// Doubles of `scratch` per block: 0 if shared memory is enough.
int64_t icm_direct_scratch(int64_t cols);

// The unary tables of rows that fit. Rows whose terms do not fit are listed, and their `fits` is cleared.
void launch_unary_tables(const IcmBooks& books, const IcmTables& tables, const IcmRows& rows, const IcmList& list,
                         cudaStream_t stream);
void launch_icm_tables(const IcmBooks& books, const IcmTables& tables, const IcmRows& rows, const IcmRun& run,
                       int multiprocessors, cudaStream_t stream);

void launch_icm_products(const IcmBooks& books, const IcmRows& rows, const IcmRun& run, cudaStream_t stream);

}  // namespace kith
