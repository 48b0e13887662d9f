#include "transform/dense_vectors.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/dense_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/distance/canonical_step_cpu-inl.hpp"

#include <cmath>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

double Dot(const double* x, const double* y, int64_t count) {
  constexpr int64_t kVectors = kCanonicalLanes / kDoubles;
  Doubles sums[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(F64());
  int64_t i = 0;
  for (; i + kCanonicalLanes <= count; i += kCanonicalLanes) {
#pragma GCC unroll 8
    for (int64_t v = 0; v < kVectors; ++v) {
      sums[v] = fused(hn::LoadU(F64(), x + i + v * kDoubles), hn::LoadU(F64(), y + i + v * kDoubles), sums[v]);
    }
  }
  HWY_ALIGN double lanes[kCanonicalLanes];
  for (int64_t v = 0; v < kVectors; ++v) hn::Store(sums[v], F64(), lanes + v * kDoubles);
  for (int64_t j = 0; i + j < count; ++j) lanes[j] = std::fma(x[i + j], y[i + j], lanes[j]);
  return canonical_tree(lanes);
}

void AddScaled(double scale, const double* x, int64_t count, double* y) {
  const Doubles factor = hn::Set(F64(), scale);
  int64_t i = 0;
  for (; i + kDoubles <= count; i += kDoubles) {
    hn::StoreU(fused(factor, hn::LoadU(F64(), x + i), hn::LoadU(F64(), y + i)), F64(), y + i);
  }
  for (; i < count; ++i) y[i] = std::fma(scale, x[i], y[i]);
}

void RotateRows(const RowRotation* rotations, int64_t count, double* values, int64_t cols, int64_t stride) {
  for (int64_t r = 0; r < count; ++r) {
    const double c = rotations[r].cosine;
    const double s = rotations[r].sine;
    double* const x = values + rotations[r].row * stride;
    double* const y = x + stride;
    const Doubles cosine = hn::Set(F64(), c);
    const Doubles sine = hn::Set(F64(), s);
    const Doubles minus = hn::Set(F64(), -s);
    int64_t i = 0;
    for (; i + kDoubles <= cols; i += kDoubles) {
      const Doubles a = hn::LoadU(F64(), x + i);
      const Doubles b = hn::LoadU(F64(), y + i);
      hn::StoreU(fused(cosine, a, hn::Mul(minus, b)), F64(), x + i);
      hn::StoreU(fused(cosine, b, hn::Mul(sine, a)), F64(), y + i);
    }
    for (; i < cols; ++i) {
      const double a = x[i];
      const double b = y[i];
      x[i] = std::fma(c, a, -s * b);
      y[i] = std::fma(c, b, s * a);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(Dot);
HWY_EXPORT(AddScaled);
HWY_EXPORT(RotateRows);

double dot(const double* x, const double* y, int64_t count) { return HWY_DYNAMIC_DISPATCH(Dot)(x, y, count); }

void add_scaled(double scale, const double* x, int64_t count, double* y) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(scale, x, count, y);
}

void rotate_rows(const RowRotation* rotations, int64_t count, double* values, int64_t cols, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(RotateRows)(rotations, count, values, cols, stride);
}

}  // namespace kith
#endif
