// One step of the canonical sums (canonical.hpp) on vectors of doubles. Included once for each instruction set, by
// files that Highway compiles several times.
#if defined(KITH_KERNELS_DISTANCE_CANONICAL_STEP_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_DISTANCE_CANONICAL_STEP_CPU_INL
#undef KITH_KERNELS_DISTANCE_CANONICAL_STEP_CPU_INL
#else
#define KITH_KERNELS_DISTANCE_CANONICAL_STEP_CPU_INL
#endif

#include "kernels/distance/canonical.hpp"
#include "rows/load_cpu-inl.hpp"

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::Vec<F64>;
constexpr int64_t kDoubles = hn::MaxLanes(F64());

// a * b + c with one rounding, also where the instruction set has no such instruction.
template <typename V>
HWY_INLINE V fused(V a, V b, V c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  using D = hn::DFromV<V>;
  constexpr int64_t kLanes = hn::MaxLanes(D());
  HWY_ALIGN hn::TFromV<V> x[kLanes], y[kLanes], z[kLanes];
  hn::Store(a, D(), x);
  hn::Store(b, D(), y);
  hn::Store(c, D(), z);
  for (int64_t i = 0; i < kLanes; ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(D(), z);
#endif
}

// canonical_join of vectors with the tag d. Magnitudes are ordered as their bits are, with every NaN at the far end.
template <KeyKind kKind, typename D>
HWY_INLINE hn::Vec<D> join_lanes(D d, hn::Vec<D> a, hn::Vec<D> b) {
  if constexpr (kKind == KeyKind::linf) {
    const hn::Rebind<int64_t, D> bits;
    return hn::BitCast(d, hn::Max(hn::BitCast(bits, a), hn::BitCast(bits, b)));
  }
  return hn::Add(a, b);
}

// canonical_step, one lane in each element. For cosine q and x are divided by their norms already.
template <KeyKind kKind>
HWY_INLINE Doubles step_lanes(Doubles lanes, Doubles q, Doubles x) {
  if constexpr (kKind == KeyKind::inner_product) {
    return fused(q, x, lanes);
  } else if constexpr (kKind == KeyKind::l1 || kKind == KeyKind::linf) {
    return join_lanes<kKind>(F64(), lanes, hn::Abs(hn::Sub(q, x)));
  } else if constexpr (kKind == KeyKind::chi_square) {
    const Doubles difference = hn::Sub(q, x);
    const Doubles total = hn::Add(q, x);
    const Doubles ratio = hn::Div(hn::Mul(difference, difference), total);
    return hn::Add(lanes, hn::IfThenZeroElse(hn::Eq(total, hn::Zero(F64())), ratio));
  } else {
    const Doubles difference = hn::Sub(q, x);
    return fused(difference, difference, lanes);
  }
}

// The first step of a lane, from zero.
template <KeyKind kKind>
HWY_INLINE Doubles first_in_lane(Doubles q, Doubles x) {
  if constexpr (kKind == KeyKind::l1) return hn::Abs(hn::Sub(q, x));
  if constexpr (kKind == KeyKind::squared_l2) {
    const Doubles difference = hn::Sub(q, x);
    return hn::Mul(difference, difference);
  }
  return step_lanes<kKind>(hn::Zero(F64()), q, x);
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
