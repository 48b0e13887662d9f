// The sums of the lanes of as many vectors as a vector has lanes: a tree that adds even to odd lanes of two vectors at
// a time, at whose end each lane holds one vector's sum. Three operations for a vector instead of three for every
// level. Included once for each instruction set, by files that Highway compiles several times.
#if defined(KITH_KERNELS_DISTANCE_ADD_LANES_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_DISTANCE_ADD_LANES_CPU_INL
#undef KITH_KERNELS_DISTANCE_ADD_LANES_CPU_INL
#else
#define KITH_KERNELS_DISTANCE_ADD_LANES_CPU_INL
#endif

#include "rows/load_cpu-inl.hpp"

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of each vector's lanes in the lane of its number.
HWY_INLINE hn::Vec<F32> add_lanes(hn::Vec<F32> (&sums)[hn::MaxLanes(F32())]) {
  const F32 d;
#pragma GCC unroll 8
  for (int64_t count = hn::MaxLanes(F32()); count > 1; count /= 2) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < count / 2; ++i) {
      const auto even = hn::ConcatEven(d, sums[2 * i + 1], sums[2 * i]);
      sums[i] = hn::Add(even, hn::ConcatOdd(d, sums[2 * i + 1], sums[2 * i]));
    }
  }
  return sums[0];
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
