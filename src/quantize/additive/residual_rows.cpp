#include "quantize/additive/residual_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/additive/residual_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
constexpr int64_t kFloats = hn::MaxLanes(F32());

template <int kVectors>
HWY_INLINE void subtract(const float* row, const float* const* others, int64_t count, int64_t at, float* out) {
  const F32 d;
  hn::Vec<F32> left[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) left[v] = hn::LoadU(d, row + at + v * kFloats);
  for (int64_t k = 0; k < count; ++k) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) left[v] = hn::Sub(left[v], hn::LoadU(d, others[k] + at + v * kFloats));
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) hn::StoreU(left[v], d, out + at + v * kFloats);
}

void SubtractRows(const float* row, const float* const* others, int64_t count, int64_t cols, float* out) {
  int64_t at = 0;
  for (; at + 8 * kFloats <= cols; at += 8 * kFloats) subtract<8>(row, others, count, at, out);
  for (; at + kFloats <= cols; at += kFloats) subtract<1>(row, others, count, at, out);
  for (; at < cols; ++at) {
    float value = row[at];
    for (int64_t k = 0; k < count; ++k) value -= others[k][at];
    out[at] = value;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(SubtractRows);

void subtract_rows_cpu(const float* row, const float* const* others, int64_t count, int64_t cols, float* out) {
  HWY_DYNAMIC_DISPATCH(SubtractRows)(row, others, count, cols, out);
}

}  // namespace kith
#endif
