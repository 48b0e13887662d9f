// Test data by name, the hard kinds included. Seeded: the same bytes every time.
#pragma once

#include "core/random.hpp"
#include "reference/brute_force.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string_view>

namespace kith::reference {

enum class Shape {
  gaussian,
  far_mean,         // mean far larger than spread
  near_duplicates,  // a few points, each many times with tiny changes
  all_equal,
  sorted,  // row i is i, i, i, ...
  reversed,
  with_zeros,   // every third row is zero
  huge,         // squares overflow f32
  tiny,         // squares underflow f32
  mixed_norms,  // norms over six orders of magnitude
};

inline constexpr Shape kAllShapes[] = {Shape::gaussian, Shape::far_mean,   Shape::near_duplicates, Shape::all_equal,
                                       Shape::sorted,   Shape::reversed,   Shape::with_zeros,      Shape::huge,
                                       Shape::tiny,     Shape::mixed_norms};

inline std::string_view name_of(Shape shape) {
  constexpr std::string_view kNames[] = {"gaussian", "far_mean",   "near_duplicates", "all_equal",
                                         "sorted",   "reversed",   "with_zeros",      "huge",
                                         "tiny",     "mixed_norms"};
  return kNames[static_cast<int>(shape)];
}

inline std::ostream& operator<<(std::ostream& out, Shape shape) { return out << name_of(shape); }

float gaussian(const CounterRng& rng, uint64_t index);

Matrix<float> make_floats(Shape shape, int64_t rows, int64_t cols, uint64_t seed);

// Floats stored as T: rounded to a 16-bit float, or cut to what an integer holds.
template <typename T>
Matrix<T> stored_as(const Matrix<float>& floats) {
  Matrix<T> m(floats.rows, floats.cols);
  for (size_t i = 0; i < m.values.size(); ++i) {
    if constexpr (std::is_same_v<T, Half>) {
      m.values[i] = half_of(floats.values[i]);
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      m.values[i] = bfloat16_of(floats.values[i]);
    } else if constexpr (std::is_same_v<T, float>) {
      m.values[i] = floats.values[i];
    } else {
      const auto limits = std::numeric_limits<T>();
      m.values[i] = static_cast<T>(std::clamp<float>(40 * floats.values[i], limits.min(), limits.max()));
    }
  }
  return m;
}

// Values that no metric refuses.
inline Matrix<float> without_sign(Matrix<float> m) {
  for (float& value : m.values) value = std::abs(value);
  return m;
}

Matrix<uint8_t> make_bytes(int64_t rows, int64_t cols, uint64_t seed, uint32_t largest = 255);

}  // namespace kith::reference
