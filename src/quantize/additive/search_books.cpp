#include "quantize/additive/search_books.hpp"

#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"

#include <algorithm>

namespace kith {
namespace {

// The mean of a book's codewords.
void average(const Codebooks& books, int64_t k, std::vector<double>& mean) {
  std::fill(mean.begin(), mean.end(), 0.0);
  for (int64_t j = 0; j < books.words(); ++j) {
    const float* const word = books.word(k, j);
    for (size_t c = 0; c < mean.size(); ++c) mean[c] += static_cast<double>(word[c]);
  }
  for (double& value : mean) value /= static_cast<double>(books.words());
}

template <typename Use>
void for_each_book(const Codebooks& books, const Resources& resources, const Use& use) {
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("codebooks", books.books, quiet);
  parallel_for(books.books, meter, quiet, [&](int64_t k, int) { use(k); });
}

// Subtracts the books' means, rounded to the grid that the codewords then have: codewords on the grid stay on it. Does
// nothing if sums of codewords overflow f32. `moves`: books x cols zeros, which become the means.
CodewordGrid move_codewords(const Codebooks& given, const Resources& resources, float* values, float* moves) {
  std::copy(given.values, given.values + given.size(), values);
  Codebooks moved = given;
  moved.values = values;
  const CodewordGrid before(given);
  if (!(before.most() > 0)) return CodewordGrid(moved);
  for_each_book(given, resources, [&](int64_t k) {
    std::vector<double> mean(static_cast<size_t>(given.cols));
    average(given, k, mean);
    float* const move = moves + k * given.cols;
    for (int64_t c = 0; c < given.cols; ++c) move[c] = before.rounded(mean[static_cast<size_t>(c)]);
    for (int64_t j = 0; j < given.words(); ++j) {
      float* const word = values + (k * given.words() + j) * given.cols;
      for (int64_t c = 0; c < given.cols; ++c) {
        word[c] = static_cast<float>(static_cast<double>(word[c]) - static_cast<double>(move[c]));
      }
    }
  });
  return CodewordGrid(moved);
}

}  // namespace

SearchBooks::SearchBooks(const Codebooks& given, const Resources& resources)
    : values_(given.size(), "codebooks on their grid", resources),
      origin_(given.cols, "codebooks on their grid", resources),
      means_(given.books * given.cols, "codebooks on their grid", resources),
      rounded_(given),
      nearest_(static_cast<size_t>(given.books)),
      made_(static_cast<size_t>(given.books)) {
  rounded_.values = values_.data();
  if (resources.host_memory()->counts_only()) return;
  std::fill(means_.begin(), means_.end(), 0.0f);
  grid_ = move_codewords(given, resources, values_.data(), means_.data());
  std::fill(origin_.begin(), origin_.end(), 0.0);
  for (int64_t i = 0; i < means_.size(); ++i) origin_[i % given.cols] += static_cast<double>(means_[i]);
  for_each_book(given, resources, [&](int64_t k) {
    float* const book = values_.data() + k * given.words() * given.cols;
    for (int64_t i = 0; i < given.words() * given.cols; ++i) book[i] = grid_.rounded(static_cast<double>(book[i]));
    std::vector<double> mean(static_cast<size_t>(given.cols));
    average(rounded_, k, mean);
    for (int64_t c = 0; c < given.cols; ++c) means_[k * given.cols + c] = grid_.rounded(mean[static_cast<size_t>(c)]);
  });
}

bool SearchBooks::move_row(float* row) const {
  const int64_t cols = rounded_.cols;
  bool fits = true;
  for (int64_t c = 0; c < cols; ++c) fits = fits && grid_.holds(static_cast<double>(row[c]) - origin_[c]);
  for (int64_t c = 0; c < cols; ++c) {
    const double moved = static_cast<double>(row[c]) - origin_[c];
    row[c] = fits ? grid_.rounded(moved) : static_cast<float>(moved);
  }
  return fits;
}

const NearestCodeword& SearchBooks::nearest(int64_t k) const {
  std::call_once(made_[static_cast<size_t>(k)],
                 [&] { nearest_[static_cast<size_t>(k)].set(rounded_.book(k), rounded_.words(), rounded_.cols); });
  return nearest_[static_cast<size_t>(k)];
}

namespace {

// Limits beyond which steps are subnormal or sums overflow f32.
constexpr int kLeastExponent = -120;
constexpr int kMostExponent = 124;

double sum_of_largest(const Codebooks& books) {
  constexpr int64_t kLanes = 16;  // that do not wait for each other
  double sum = 0;
  for (int64_t k = 0; k < books.books; ++k) {
    const float* const book = books.book(k);
    const int64_t count = books.words() * books.cols;
    float largest[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) largest[l] = std::max(largest[l], std::abs(book[i + l]));
    }
    for (; i < count; ++i) largest[0] = std::max(largest[0], std::abs(book[i]));
    sum += static_cast<double>(*std::max_element(largest, largest + kLanes));
  }
  return sum;
}

}  // namespace

CodewordGrid::CodewordGrid(const Codebooks& books) {
  const double sum = sum_of_largest(books);
  int exponent = 0;
  if (sum > 0) std::frexp(sum, &exponent);  // sum < 2^exponent
  const bool overflows = exponent > kMostExponent;
  exponent = std::clamp(exponent, kLeastExponent, kMostExponent);
  step_ = std::ldexp(1.0, exponent - 22);
  shift_ = std::ldexp(1.5, exponent - 22 + 52);
  most_ = overflows ? -1.0 : std::ldexp(1.0, exponent + 1);
}

void round_to_grid(float* values, int64_t books, int bits, int64_t cols) {
  // Rounding may lift the sum of the largest values to the next power of two, which has a coarser grid; at most once.
  for (int pass = 0; pass < 2; ++pass) {
    const Codebooks view{values, books, bits, cols};
    const CodewordGrid grid(view);
    for (int64_t i = 0; i < view.size(); ++i) values[i] = grid.rounded(values[i]);
  }
}

}  // namespace kith
