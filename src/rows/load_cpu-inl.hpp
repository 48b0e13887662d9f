// Loads of stored values as vectors of floats or doubles, for every dtype. Included once for each instruction set, by
// files that Highway compiles several times.
#if defined(KITH_KERNELS_DISTANCE_LOAD_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_DISTANCE_LOAD_CPU_INL
#undef KITH_KERNELS_DISTANCE_LOAD_CPU_INL
#else
#define KITH_KERNELS_DISTANCE_LOAD_CPU_INL
#endif

#include "core/half.hpp"

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::ScalableTag<double>;
using F32 = hn::ScalableTag<float>;

// As many floats as the tag D, of floats, has lanes.
template <typename D>
HWY_INLINE hn::Vec<D> load_as_floats(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <typename D>
HWY_INLINE hn::Vec<D> load_as_floats(D d, const uint8_t* from) {
  return hn::ConvertTo(d, hn::PromoteTo(hn::Rebind<int32_t, D>(), hn::LoadU(hn::Rebind<uint8_t, D>(), from)));
}
template <typename D>
HWY_INLINE hn::Vec<D> load_as_floats(D d, const int8_t* from) {
  return hn::ConvertTo(d, hn::PromoteTo(hn::Rebind<int32_t, D>(), hn::LoadU(hn::Rebind<int8_t, D>(), from)));
}
template <typename D>
HWY_INLINE hn::Vec<D> load_as_floats(D d, const Half* from) {
  const auto stored = hn::LoadU(hn::Rebind<uint16_t, D>(), &from->bits);
  const auto value = hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), stored));
#if HWY_TARGET >= HWY_SSE4 && HWY_ARCH_X86  // without an instruction for it Highway takes infinity and NaN for numbers
  const hn::Rebind<uint32_t, D> u32;
  const auto bits = hn::PromoteTo(u32, stored);
  const auto special = hn::Eq(hn::And(bits, hn::Set(u32, 0x7C00u)), hn::Set(u32, 0x7C00u));
  const auto wide = hn::Or(hn::ShiftLeft<16>(hn::And(bits, hn::Set(u32, 0x8000u))),
                           hn::Or(hn::Set(u32, 0x7F800000u), hn::ShiftLeft<13>(hn::And(bits, hn::Set(u32, 0x3FFu)))));
  return hn::IfThenElse(hn::RebindMask(d, special), hn::BitCast(d, wide), value);
#else
  return value;
#endif
}
template <typename D>
HWY_INLINE hn::Vec<D> load_as_floats(D d, const BFloat16* from) {
  const hn::Rebind<uint32_t, D> bits;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(hn::Rebind<uint16_t, D>(), &from->bits))));
}

template <typename T>
HWY_INLINE hn::Vec<F32> load_floats(const T* from) {
  return load_as_floats(F32(), from);
}
// The first `count` floats, or all that a vector holds; lanes behind them are zero, and nothing is read there.
HWY_INLINE hn::Vec<F32> load_padded(const float* from, int64_t count) {
  constexpr int64_t kLanes = hn::MaxLanes(F32());
  if (HWY_LIKELY(count >= kLanes)) return hn::LoadU(F32(), from);
  HWY_ALIGN float values[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) values[i] = from[i];
  return hn::Load(F32(), values);
}
template <typename T>
HWY_INLINE hn::Vec<F64> load_doubles(const T* from) {
  return hn::PromoteTo(F64(), load_as_floats(hn::Rebind<float, F64>(), from));
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
