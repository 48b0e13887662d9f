// Doubles as floats on the CPU: the nearest ones, infinite beyond the largest. Included once for each instruction set,
// by files that Highway compiles several times.
#if defined(KITH_KERNELS_DISTANCE_TO_FLOATS_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_DISTANCE_TO_FLOATS_CPU_INL
#undef KITH_KERNELS_DISTANCE_TO_FLOATS_CPU_INL
#else
#define KITH_KERNELS_DISTANCE_TO_FLOATS_CPU_INL
#endif

#include "rows/load_cpu-inl.hpp"

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE hn::Vec<hn::Rebind<float, F64>> to_floats(hn::Vec<F64> doubles) {
  const hn::Rebind<float, F64> d;
#if HWY_TARGET == HWY_EMU128  // whose DemoteTo is finite beyond the largest float
  constexpr int64_t kLanes = hn::MaxLanes(F64());
  HWY_ALIGN double from[kLanes];
  HWY_ALIGN float to[kLanes];
  hn::Store(doubles, F64(), from);
  for (int64_t i = 0; i < kLanes; ++i) to[i] = static_cast<float>(from[i]);
  return hn::Load(d, to);
#else
  return hn::DemoteTo(d, doubles);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
