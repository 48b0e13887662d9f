// Floats scaled, and as units of panels, by vectors: packing rows for one search takes longer than the search where
// this is slow.
#include "kernels/panels/panel_format.hpp"
#include "kernels/panels/panel_packing.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panels/encode_floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/half.hpp"

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
constexpr int64_t kFloats = hn::MaxLanes(F32());

// To nearest, ties to even, in the upper half. What a NaN becomes does not matter: nothing is claimed of such rows.
HWY_INLINE hn::Vec<U32> bf16_above(hn::Vec<F32> values) {
  const U32 d;
  const auto bits = hn::BitCast(d, values);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
  return hn::And(hn::Add(hn::Add(bits, hn::Set(d, 0x7FFFu)), odd), hn::Set(d, 0xFFFF0000u));
}

// Values and what their rounding leaves, rounded: two to a unit, the first below. Returns how many values were taken,
// which are whole vectors.
int64_t EncodeBf16(const float* values, int64_t cols, float scale, uint32_t* high, uint32_t* low) {
  int64_t c = 0;
  const F32 d;
  const auto times = hn::Set(d, scale);
  for (; c + 2 * kFloats <= cols; c += 2 * kFloats) {
    hn::Vec<F32> first;
    hn::Vec<F32> second;
    hn::LoadInterleaved2(d, values + c, first, second);
    first = hn::Mul(first, times);
    second = hn::Mul(second, times);
    const auto a = bf16_above(first);
    const auto b = bf16_above(second);
    const auto rest_a = bf16_above(hn::Sub(first, hn::BitCast(d, a)));
    const auto rest_b = bf16_above(hn::Sub(second, hn::BitCast(d, b)));
    hn::StoreU(hn::Or(hn::ShiftRight<16>(a), b), U32(), high + c / 2);
    hn::StoreU(hn::Or(hn::ShiftRight<16>(rest_a), rest_b), U32(), low + c / 2);
  }
  return c;
}

// Rounded once; whole vectors, of which it returns how many values they hold.
int64_t ScaleVector(const float* vector, int64_t cols, double scale, float* out) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, hn::ScalableTag<double>> floats;
  constexpr int64_t kDoubles = hn::MaxLanes(hn::ScalableTag<double>());
  const auto times = hn::Set(d, scale);
  int64_t c = 0;
  for (; c + kDoubles <= cols; c += kDoubles) {
    const auto value = hn::PromoteTo(d, hn::LoadU(floats, vector + c));
    hn::StoreU(hn::DemoteTo(floats, hn::Mul(value, times)), floats, out + c);
  }
  return c;
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(EncodeBf16);
HWY_EXPORT(ScaleVector);

namespace {

uint32_t bf16_above(float value) {
  const uint32_t bits = bits_of_float(value);
  return (bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u;
}

// A unit of either part.
void encode_pair(float first, float second, uint32_t* high, uint32_t* low) {
  const uint32_t a = bf16_above(first);
  const uint32_t b = bf16_above(second);
  *high = a >> 16 | b;
  *low = bf16_above(first - float_of_bits(a)) >> 16 | bf16_above(second - float_of_bits(b));
}

}  // namespace

void scale_vector(const float* vector, int64_t cols, double scale, float* out) {
  for (int64_t c = HWY_DYNAMIC_DISPATCH(ScaleVector)(vector, cols, scale, out); c < cols; ++c) {
    out[c] = static_cast<float>(vector[c] * scale);
  }
}

void encode_floats(PanelFormat format, const float* values, int64_t cols, float scale, uint32_t* out) {
  if (holds_f32(format)) {
    for (int64_t c = 0; c < cols; ++c) out[c] = bits_of_float(values[c] * scale);
    return;
  }
  const int64_t units = units_per_part(format, cols);
  uint32_t* const low = out + units;
  const int64_t done = HWY_DYNAMIC_DISPATCH(EncodeBf16)(values, cols, scale, out, low);
  for (int64_t u = done / 2; u < units; ++u) {
    const float first = 2 * u < cols ? values[2 * u] * scale : 0.0f;
    encode_pair(first, 2 * u + 1 < cols ? values[2 * u + 1] * scale : 0.0f, out + u, low + u);
  }
}

}  // namespace kith
#endif
