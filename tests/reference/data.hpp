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

inline float gaussian(const CounterRng& rng, uint64_t index) {
  const float u = rng.uniform(2 * index) + 0x1p-25f;
  const float v = rng.uniform(2 * index + 1);
  return std::sqrt(-2.0f * std::log(u)) * std::cos(6.2831853f * v);
}

inline Matrix<float> make_floats(Shape shape, int64_t rows, int64_t cols, uint64_t seed) {
  Matrix<float> m(rows, cols);
  const CounterRng rng(seed, static_cast<uint64_t>(shape));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      const float g = gaussian(rng, static_cast<uint64_t>(r * cols + c));
      float value = g;
      switch (shape) {
        case Shape::gaussian: break;
        case Shape::far_mean: value = 1000.0f + 0.01f * g; break;
        case Shape::near_duplicates:
          value = gaussian(rng, static_cast<uint64_t>(1000000 + r % 3 * cols + c)) * (1.0f + 1e-7f * g);
          break;
        case Shape::all_equal: value = 0.1f * static_cast<float>(c % 7) + 0.3f; break;
        case Shape::sorted: value = static_cast<float>(r); break;
        case Shape::reversed: value = static_cast<float>(rows - r); break;
        case Shape::with_zeros: value = r % 3 == 0 ? 0.0f : g; break;
        case Shape::huge: value = g * 3e18f; break;
        case Shape::tiny: value = g * 1e-21f; break;
        case Shape::mixed_norms: value = g * std::pow(10.0f, static_cast<float>(r % 7) - 3.0f); break;
      }
      m.row(r)[c] = value;
    }
  }
  return m;
}

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

inline Matrix<uint8_t> make_bytes(int64_t rows, int64_t cols, uint64_t seed, uint32_t largest = 255) {
  Matrix<uint8_t> m(rows, cols);
  const CounterRng rng(seed, 77);
  for (size_t i = 0; i < m.values.size(); ++i) m.values[i] = static_cast<uint8_t>(rng.below(i, largest + 1));
  return m;
}

}  // namespace kith::reference
