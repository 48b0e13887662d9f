#include "transform/random_rotation.hpp"

#include "kernels/dense/factorisations.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr uint64_t kRotationStream = 0x726F7461;

// In (-1, 1).
double uniform(uint32_t high, uint32_t low) {
  const uint64_t bits = (static_cast<uint64_t>(high) << 21) ^ (low >> 11);
  return (static_cast<double>(bits) + 0.5) * 0x1p-52 - 1.0;
}

}  // namespace

NormalPair normal_pair(const CounterRng& rng, uint64_t i) {
  constexpr uint64_t kTries = 64;  // one in five fails
  for (uint64_t attempt = 0; attempt < kTries; ++attempt) {
    const Random4 words = rng.block(i * kTries + attempt);
    const double u = uniform(words.word[0], words.word[1]);
    const double v = uniform(words.word[2], words.word[3]);
    const double squared = u * u + v * v;
    if (squared >= 1 || squared == 0) continue;
    const double scale = std::sqrt(-2 * logarithm(squared) / squared);
    return {u * scale, v * scale};
  }
  return {1, 1};
}

Dense random_rotation(int64_t in, int64_t out, uint64_t seed, const Resources& resources) {
  const CounterRng rng(seed, kRotationStream);
  Dense normal(std::min(in, out), std::max(in, out), "a random matrix", resources);
  const int64_t count = normal.rows() * normal.cols();
  for (int64_t i = 0; i < count; i += 2) {
    const NormalPair pair = normal_pair(rng, static_cast<uint64_t>(i / 2));
    normal.row(0)[i] = pair.first;
    if (i + 1 < count) normal.row(0)[i + 1] = pair.second;
  }
  Dense rows = orthonormal_rows(normal, resources);
  if (out <= in) return rows;
  Dense columns(out, in, "a random matrix", resources);
  for (int64_t i = 0; i < out; ++i) {
    for (int64_t j = 0; j < in; ++j) columns(i, j) = rows(j, i);
  }
  return columns;
}

}  // namespace kith
