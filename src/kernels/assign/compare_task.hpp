// Centres as tables that were made once, with the bound that comes with them: what the CPU's forms of assignment work
// with. They are compiled once for each instruction set.
#pragma once

#include "core/divide.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/error_bound.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

inline constexpr int64_t kMostFewCentres = 512;  // more are better packed (assign_cpu.hpp)
inline constexpr int64_t kCentreTile = 16;       // centres that lie side by side for each column
inline constexpr int64_t kCentreGroup = 4;       // centres whose values are broadcast together
inline constexpr int64_t kRowsTogether = 8;      // rows that are compared at a time, at most
// Groups of rows that use a tile of a table of `width` centres before the next one is read: of a large table it comes
// from the second-level cache. Very wide rows would take too much memory.
inline constexpr int64_t kGroupsTogether = 8;
constexpr int64_t groups_together(int64_t width, int64_t cols) {
  constexpr int64_t kSmallTable = 6 << 10;  // values
  return width * cols > kSmallTable && cols <= 2048 ? kGroupsTogether : 1;
}
inline constexpr int64_t kShortColumns = 16;   // up to this many, a vector holds a column of several rows
inline constexpr int64_t kVeryFewCentres = 7;           // up to this many are compared with vectors along the columns

struct CompareTask {
  KeyKind kind = KeyKind::squared_l2;
  int64_t cols = 0;
  int64_t padded = 0;  // columns
  int64_t count = 0;   // centres
  int64_t width = 0;   // the same, padded to whole tiles
  const float* origin = nullptr;
  const float* table = nullptr;  // factors: for each tile of centres cols x kCentreTile
  const float* terms = nullptr;  // what the products are added to: width, infinite past the last
  // Tables of some forms only.
  const float* groups = nullptr;    // for each kCentreGroup centres their terms, then cols x kCentreGroup factors
  const float* columns = nullptr;   // centres as they are: cols x width
  const float* lines = nullptr;     // of very few centres: kVeryFewCentres x padded factors
  const double* wide = nullptr;     // centres as they are: count x padded,
  const float* words = nullptr;     // or as f32
  const uint8_t* number = nullptr;  // the caller's numbers of the centres, ascending
  ErrorBound bound{};               // of a value, by the norm of a row minus the origin

  // Combined error bound of two values of a row; not finite if there is none.
  float slack(float squared_norm) const {
    if (!(squared_norm < static_cast<float>(kLargestSquaredNorm))) return HUGE_VALF;
    return 2 * bound.at(std::sqrt(squared_norm) * 1.001f);  // covers the norm's rounding
  }
};

// Groups of centres: how many values they take, and where a centre's term is; its factors are every kCentreGroup from
// there on.
constexpr int64_t group_floats(int64_t centres, int64_t cols) { return round_up(centres, kCentreGroup) * (cols + 1); }
inline float* group_of(float* groups, int64_t centre, int64_t cols) {
  return groups + centre / kCentreGroup * kCentreGroup * (cols + 1) + centre % kCentreGroup;
}

// Error of values term + row x factors, products added one by one, for centres whose largest squared norm this is:
// c (|q| + |x|)^2, or c |q| |x| by inner products. Rows and centres stand the other way round in error_bound.hpp.
inline ErrorBound assign_bound(KeyKind kind, int64_t cols, double largest_squared_norm) {
  const bool bounded = largest_squared_norm < kLargestSquaredNorm;  // false for a NaN
  const double norm = bounded ? std::sqrt(largest_squared_norm) * 1.001 : HUGE_VAL;
  const double error = product_error(cols);
  if (kind == KeyKind::inner_product) {
    return {static_cast<float>(underflow_error(cols)), static_cast<float>(error * norm), 0.0f};
  }
  return {static_cast<float>(error * norm * norm + underflow_error(cols)), static_cast<float>(2 * error * norm),
          static_cast<float>(error)};
}

}  // namespace kith
