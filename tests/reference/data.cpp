#include "reference/data.hpp"

namespace kith::reference {

float gaussian(const CounterRng& rng, uint64_t index) {
  const float u = rng.uniform(2 * index) + 0x1p-25f;
  const float v = rng.uniform(2 * index + 1);
  return std::sqrt(-2.0f * std::log(u)) * std::cos(6.2831853f * v);
}

Matrix<float> make_floats(Shape shape, int64_t rows, int64_t cols, uint64_t seed) {
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

Matrix<uint8_t> make_bytes(int64_t rows, int64_t cols, uint64_t seed, uint32_t largest) {
  Matrix<uint8_t> m(rows, cols);
  const CounterRng rng(seed, 77);
  for (size_t i = 0; i < m.values.size(); ++i) m.values[i] = static_cast<uint8_t>(rng.below(i, largest + 1));
  return m;
}

}  // namespace kith::reference
