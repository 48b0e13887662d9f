#include "quantize/additive/codeword_grid.hpp"

#include <algorithm>

namespace kith {
namespace {

// Beyond these, steps are subnormal or sums overflow f32.
constexpr int kLeastExponent = -120;
constexpr int kMostExponent = 124;

double sum_of_largest(const Codebooks& books) {
  double sum = 0;
  for (int64_t k = 0; k < books.books; ++k) {
    float largest = 0;
    for (int64_t i = 0; i < books.words() * books.cols; ++i) largest = std::max(largest, std::abs(books.book(k)[i]));
    sum += static_cast<double>(largest);
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
  // Rounding may lift the sum of the largest to the next power of two, whose grid is coarser: once.
  for (int pass = 0; pass < 2; ++pass) {
    const Codebooks view{values, books, bits, cols};
    const CodewordGrid grid(view);
    for (int64_t i = 0; i < view.size(); ++i) values[i] = grid.rounded(values[i]);
  }
}

}  // namespace kith
