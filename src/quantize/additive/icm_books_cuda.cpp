#include "quantize/additive/icm_books_cuda.hpp"

#include "core/half.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "cuda/workspace_layout.hpp"
#include "kernels/matrix/candidate_window.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

namespace kith {
namespace {

constexpr float kNeverFirst = -3e38f;  // the term of what is never the first
constexpr int kScaledStep = -9;   // the exponent of a grid's step once it is scaled

struct Places : WorkspaceLayout {
  Places(const Codebooks& books, bool products) {
    const int64_t padded = products ? product_cols(books.cols) : 0;
    const int64_t words = products ? books.books * kProductWords : 0;
    plain = take(books.size(), 4);
    columns = take(books.size(), 4);
    means = take(books.books * books.cols, 4);
    origin = take(books.cols, 8);
    centred = take(words * padded, 4);
    tiles = take(words * padded, 2);
    terms = take(words, 4);
    windows = take(products ? books.books : 0, sizeof(BookWindow));
    centre = take(padded, 4);
  }

  int64_t plain, columns, means, origin, centred, tiles, terms, windows, centre;
};

// Where a column of a codeword lies in its book's tile: chunks of 64 columns, rows of 128 bytes whose 16-byte units are
// swizzled by the row's number modulo 8, and columns permuted within 16 so that a lane of the matrix unit, which has
// places 2 t, 2 t + 1, 2 t + 8 and 2 t + 9, gets columns 4 t to 4 t + 3.
int64_t tile_place(int64_t word, int64_t column) {
  const int64_t chunk = column / kProductChunkCols;
  const int64_t in_step = column % 16;
  const int64_t unit = column % kProductChunkCols / 16 * 2 + in_step % 4 / 2;
  return chunk * kProductChunkBytes + word * 128 + (unit ^ word % 8) * 16 + in_step / 4 * 4 + in_step % 2 * 2;
}

// Codewords that equal an earlier one, which is taken instead of them.
std::vector<bool> repeated_words(const Codebooks& books, int64_t k) {
  std::vector<int64_t> order(static_cast<size_t>(books.words()));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto bytes = static_cast<size_t>(books.cols) * sizeof(float);
  const auto compare = [&](int64_t a, int64_t b) { return std::memcmp(books.word(k, a), books.word(k, b), bytes); };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int by_value = compare(a, b);
    return by_value != 0 ? by_value < 0 : a < b;
  });
  std::vector<bool> repeated(order.size());
  for (size_t i = 1; i < order.size(); ++i) {
    repeated[static_cast<size_t>(order[i])] = compare(order[i - 1], order[i]) == 0;
  }
  return repeated;
}

// Everything is in the scaled unit. With r the row less all other codewords, moved as the book is, and c a codeword:
// the product's operands are r + e, |e| <= rounding + 2^-11 (|r| + rounding), since r is made with a rounded codeword,
// and c + d, |d| <= rounding. A sum of n products on the matrix units is within n 2^-21 of the magnitudes
// (candidate_window.hpp). Two values that differ by no more than twice all that may be in either order; so may keys
// that are equal once they are rounded to f32.
BookWindow window_of(double norm, double rounding, int64_t cols, double scale) {
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

struct TablePlaces : WorkspaceLayout {
  explicit TablePlaces(const Codebooks& books) {
    pairs = take(books.books * books.all_words() * PairwiseTables::width_for(books), sizeof(int16_t));
    moved = take(books.size(), 4);
    squares = take(books.all_words(), 4);
    origin = take(books.cols, 4);
    scales = take(books.books, sizeof(TableScale));
  }

  int64_t pairs, moved, squares, origin, scales;
};

template <typename Use>
void for_each_book(const Codebooks& books, const Resources& resources, const Use& use) {
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("codebooks", books.books, quiet);
  parallel_for(books.books, meter, quiet, [&](int64_t k, int) { use(k); });
}

struct Prepared {
  float* centred;
  std::byte* tiles;
  float* terms;
  BookWindow* windows;
  float* centre;
};

void prepare_products(const SearchBooks& search, double scale, const Prepared& to, const Resources& resources) {
  const Codebooks& books = search.books();
  const int64_t padded = product_cols(books.cols);
  for (int64_t k = 0; k < books.books; ++k) {
    for (int64_t c = 0; c < books.cols; ++c) to.centre[c] += search.mean(k)[c];
  }
  for_each_book(books, resources, [&](int64_t k) {
    const std::vector<bool> repeated = repeated_words(books, k);
    double largest = 0;
    double rounding = 0;
    for (int64_t j = 0; j < kProductWords; ++j) {
      const int64_t at = k * kProductWords + j;
      to.terms[at] = kNeverFirst;
      if (j >= books.words()) continue;
      std::byte* const tile = to.tiles + k * kProductWords * padded * 2;
      double square = 0;
      double lost = 0;
      for (int64_t c = 0; c < books.cols; ++c) {
        const auto value = static_cast<float>(static_cast<double>(books.word(k, j)[c] - search.mean(k)[c]) * scale);
        const Half half = half_of(value);
        to.centred[at * padded + c] = value;
        std::memcpy(tile + tile_place(j, c), &half, sizeof half);
        const double miss = static_cast<double>(value) - static_cast<double>(half);
        square += static_cast<double>(value) * static_cast<double>(value);
        lost += miss * miss;
      }
      largest = std::max(largest, square);
      rounding = std::max(rounding, lost);
      if (!repeated[static_cast<size_t>(j)]) to.terms[at] = static_cast<float>(-square / 2);
    }
    to.windows[k] = window_of(std::sqrt(largest), std::sqrt(rounding), books.cols, scale);
  });
}

}  // namespace

bool has_icm_products(const SearchBooks& search) {
  const Codebooks& books = search.books();
  const int exponent =
      std::ilogb(search.grid().step()) + 22;  // codewords' sums are below 2^exponent, rows below twice that
  return books.cols <= kProductMostCols && books.books <= kProductMostBooks && search.grid().holds(0.0) &&
         exponent > -50 && exponent < 50;
}

IcmBooksOnDevice::IcmBooksOnDevice(const SearchBooks& search, bool products,
                                   const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  const Codebooks& books = search.books();
  const Places places(books, products);
  const HostArray<uint8_t> host(places.bytes, "codebooks for a GPU", resources);
  std::memset(host.data(), 0, static_cast<size_t>(places.bytes));
  const auto floats = [&](int64_t place) { return reinterpret_cast<float*>(host.data() + place); };
  std::copy_n(books.values, books.size(), floats(places.plain));
  std::copy_n(search.mean(0), books.books * books.cols, floats(places.means));
  std::memcpy(host.data() + places.origin, search.origin(), static_cast<size_t>(books.cols) * sizeof(double));
  for_each_book(books, resources, [&](int64_t k) {
    float* const columns = floats(places.columns) + k * books.words() * books.cols;
    for (int64_t j = 0; j < books.words(); ++j) {
      for (int64_t c = 0; c < books.cols; ++c) columns[c * books.words() + j] = books.word(k, j)[c];
    }
  });
  const double scale = std::ldexp(1.0, kScaledStep) / search.grid().step();
  if (products) {
    prepare_products(search, scale,
                     {floats(places.centred), reinterpret_cast<std::byte*>(host.data() + places.tiles),
                      floats(places.terms), reinterpret_cast<BookWindow*>(host.data() + places.windows),
                      floats(places.centre)},
                     resources);
  }
  buffer_ = DeviceBuffer(places.bytes, "codebooks", context, resources);
  context->copy(buffer_.data(), host.data(), places.bytes);
  context->synchronize();
  const auto there = [&](int64_t place) { return reinterpret_cast<const float*>(buffer_.data() + place); };
  books_.books = books.books;
  books_.bits = books.bits;
  books_.cols = books.cols;
  books_.words = there(places.plain);
  books_.columns = there(places.columns);
  books_.means = there(places.means);
  books_.origin = reinterpret_cast<const double*>(buffer_.data() + places.origin);
  if (!products) return;
  books_.centred = there(places.centred);
  books_.tiles = buffer_.data() + places.tiles;
  books_.terms = there(places.terms);
  books_.windows = reinterpret_cast<const BookWindow*>(buffer_.data() + places.windows);
  books_.centre = there(places.centre);
  books_.scale = static_cast<float>(scale);
  books_.unscale = 1 / (scale * scale);
}

int64_t IcmTablesOnDevice::bytes_for(const Codebooks& books) { return TablePlaces(books).bytes; }

IcmTablesOnDevice::IcmTablesOnDevice(const SearchBooks& search, const std::shared_ptr<const DeviceContext>& context,
                                     const Resources& resources) {
  const Codebooks& books = search.books();
  const PairwiseTables made(search, resources);
  const TablePlaces places(books);
  buffer_ = DeviceBuffer(places.bytes, "tables of codewords", context, resources);
  std::vector<TableScale> scales;
  for (int64_t k = 0; k < books.books; ++k) scales.push_back(made.scale(k));
  std::byte* const to = buffer_.data();
  const int64_t width = made.width();
  context->copy(to + places.pairs, made.row(0, 0, 0), array_bytes<int16_t>(books.books * books.all_words() * width));
  context->copy(to + places.moved, made.moved_words(), array_bytes<float>(books.size()));
  context->copy(to + places.squares, made.squared_norms(), array_bytes<float>(books.all_words()));
  context->copy(to + places.origin, made.origin(), array_bytes<float>(books.cols));
  context->copy(to + places.scales, scales.data(), array_bytes<TableScale>(books.books));
  context->synchronize();
  tables_.pairs = reinterpret_cast<const int16_t*>(to + places.pairs);
  tables_.moved = reinterpret_cast<const float*>(to + places.moved);
  tables_.squares = reinterpret_cast<const float*>(to + places.squares);
  tables_.origin = reinterpret_cast<const float*>(to + places.origin);
  tables_.scales = reinterpret_cast<const TableScale*>(to + places.scales);
  tables_.width = width;
  tables_.norms = made.norms();
}

}  // namespace kith
