// What a vector of columns adds to a chi-square distance in f32. Included once for each instruction set, by files that
// Highway compiles several times.
#if defined(KITH_KERNELS_DISTANCE_CHI_SQUARE_STEP_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_DISTANCE_CHI_SQUARE_STEP_CPU_INL
#undef KITH_KERNELS_DISTANCE_CHI_SQUARE_STEP_CPU_INL
#else
#define KITH_KERNELS_DISTANCE_CHI_SQUARE_STEP_CPU_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {

// sum + (query - row)^2 / (query + row), nothing where query + row = 0; within kReciprocalError and what underflows.
template <typename V>
HWY_INLINE V add_chi_square(V query, V row, V sum) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::DFromV<V> d;
  const V apart = hn::Sub(query, row);
  const V total = hn::Add(query, row);
  // The ratio is at most 1, so that the product loses nothing to underflow that the sum would keep.
#if HWY_ARCH_X86
  // Divisions would take most of the time. The estimate of 1 / total is within kReciprocalError; where the total is too
  // small for one the term is no larger, and counts as underflow.
  const V quotient = hn::Mul(apart, hn::ApproximateReciprocal(total));
  const V ratio = hn::IfThenElseZero(hn::Ge(total, hn::Set(d, 0x1p-124f)), quotient);
#else
  const V ratio = hn::IfThenZeroElse(hn::Eq(total, hn::Zero(d)), hn::Div(apart, total));
#endif
  return hn::MulAdd(ratio, apart, sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
