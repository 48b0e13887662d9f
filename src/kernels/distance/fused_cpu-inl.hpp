// a * b + c with one rounding on vectors of floats, also where the instruction set has no such instruction. Included
// once for each instruction set, by files that Highway compiles several times.
#if defined(KITH_KERNELS_DISTANCE_FUSED_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_DISTANCE_FUSED_CPU_INL
#undef KITH_KERNELS_DISTANCE_FUSED_CPU_INL
#else
#define KITH_KERNELS_DISTANCE_FUSED_CPU_INL
#endif

#include "rows/load_cpu-inl.hpp"

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::Vec<F32>;

HWY_INLINE Floats fused(Floats a, Floats b, Floats c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  constexpr int64_t kLanes = hn::MaxLanes(F32());
  HWY_ALIGN float x[kLanes], y[kLanes], z[kLanes];
  hn::Store(a, F32(), x);
  hn::Store(b, F32(), y);
  hn::Store(c, F32(), z);
  for (int64_t i = 0; i < kLanes; ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(F32(), z);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
