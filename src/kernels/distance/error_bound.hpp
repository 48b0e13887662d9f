// Bounds on the difference between fast f32 arithmetic and the canonical distance: the proof behind exact results.
//
// Let u = 2^-24. A sum of n products in f32, in any order, fused or not, is within n u (1 + small) of the sum of the
// products' magnitudes (Higham, Accuracy and Stability, section 3.1), and that sum is at most |q| |x|. The bounds add
// the rounding of what goes in (centring or normalising: u per element), of the norms, of the few operations after the
// sum, and of the canonical key itself (u): kExtraTerms stands for all of these, and kSlack for the rounding of the
// bounds' own arithmetic. An absolute term covers products that underflow, to zero where the process flushes them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace kith {

inline constexpr double kUnitRoundoff = 0x1p-24;
inline constexpr double kExtraTerms = 24;
inline constexpr double kSlack = 1.05;

// Products of many columns are summed in segments, whose sums are added up: no product takes part in more roundings
// than its segment has columns and there are segments.
inline constexpr int64_t kSegmentColumns = 1024;
constexpr bool has_segments(int64_t cols) { return cols > 2 * kSegmentColumns; }
constexpr int64_t sum_roundings(int64_t cols) {
  return has_segments(cols) ? kSegmentColumns + cols / kSegmentColumns + 1 : cols;
}
// Roundings in a tile's sum: three products per column, in segments shorter by less than one step.
constexpr int64_t tile_sum_roundings(int64_t cols) {
  constexpr int64_t kLongestStep = 32;
  return has_segments(cols) ? kSegmentColumns + 3 * (cols / (kSegmentColumns - kLongestStep) + 1) : 3 * cols;
}

// Error of a sum of `cols` products, relative to |q| |x|; infinite if so many roundings leave nothing sure.
inline double product_error(int64_t cols) {
  const double first_order = (static_cast<double>(cols) + kExtraTerms) * kUnitRoundoff;
  return first_order < 0.25 ? kSlack * first_order / (1 - 2 * first_order) : std::numeric_limits<double>::infinity();
}

// What underflow can add over `cols` products and their norms.
inline double underflow_error(int64_t cols) { return 4 * (static_cast<double>(cols) + kExtraTerms) * 0x1p-126; }

// Error of a sum, or of the largest, of terms that are not negative, each rounded a few times: relative to it. What
// underflows comes on top (underflow_error): chi-square's terms can, differences are exact.
inline float direct_error(int64_t cols) { return static_cast<float>(product_error(cols)); }

// An error that depends on the row through its norm r alone: constant + r (linear + r quadratic).
struct ErrorBound {
  float constant = 0;
  float linear = 0;
  float quadratic = 0;

  float at(float norm) const { return constant + norm * (linear + norm * quadratic); }
};

// |q|^2 + (|x|^2 - 2 q x) from centred f32 rows, the products added to |x|^2 one by one: all that is added up is at
// most (|q| + |x|)^2, and so is each thing that is rounded on the way.
inline ErrorBound squared_l2_product_bound(double query_norm, int64_t cols) {
  const double c = product_error(sum_roundings(cols));
  return {static_cast<float>(c * query_norm * query_norm + underflow_error(cols)),
          static_cast<float>(2 * c * query_norm), static_cast<float>(c)};
}

// q x, with the norms of the rows that are multiplied (1 for normalised ones).
inline ErrorBound inner_product_bound(double query_norm, int64_t cols) {
  return {static_cast<float>(underflow_error(cols)),
          static_cast<float>(product_error(sum_roundings(cols)) * query_norm), 0.0f};
}

// Products of f32 split into bf16 parts, high + low, each rounded to nearest: |high - x| <= 2^-8 |x|, and what both
// leave out is at most 2^-16 |x|. The high parts alone miss 2 * 2^-8 + 2^-16 of |q| |x|. High times high, high times
// low and low times high miss the product of the lows and what each side leaves out: 3 * 2^-16 and a little. Tiles take
// and give subnormal numbers for zero, in either part.
inline constexpr double kHighPartsError = 0x1p-7 * 1.01;
inline constexpr double kBothPartsError = 3.1 * 0x1p-16;

// As inner_product_bound and squared_l2_product_bound, where `split_error` of |q| |x| is missing. The parts' magnitudes
// add up to little more than the values'.
inline ErrorBound tile_product_bound(bool differences, double query_norm, int64_t cols, double split_error) {
  const double c = 1.03 * product_error(tile_sum_roundings(cols));
  const double scale = differences ? 2 : 1;
  const double flushed = static_cast<double>(cols) * 0x1p-122;
  const double constant = differences ? c * query_norm * query_norm : 0.0;
  return {static_cast<float>(constant + underflow_error(3 * cols) + flushed * (query_norm + 1)),
          static_cast<float>(scale * (c + kSlack * split_error) * query_norm + flushed),
          static_cast<float>(differences ? c : 0.0)};
}

// Squared norms at or beyond these limits can overflow or underflow f32 sums: no bound is claimed there.
inline constexpr double kLargestSquaredNorm = 1e36;
inline constexpr float kSmallestSquaredNorm = 1e-30f;

// Bounds for a root from bounds for its square.
inline float root_below(float square) { return std::sqrt(square < 0 ? 0.0f : square) * (1 - 0x1p-21f); }
inline float root_above(float square) { return std::sqrt(square < 0 ? 0.0f : square) * (1 + 0x1p-21f); }
// Bounds for a square from bounds for its root.
inline float square_above(float root) { return root * root * (1 + 0x1p-20f); }

}  // namespace kith
