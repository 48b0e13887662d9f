#include "kernels/distance/chi_square_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/chi_square_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/distance/chi_square_step_cpu-inl.hpp"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using Vec = hn::Vec<F32>;
constexpr int64_t kFloats = hn::MaxLanes(F32());

// Zeros past the last column, which add nothing.
HWY_INLINE Vec load(const float* from, int64_t count) {
  if (HWY_LIKELY(count >= kFloats)) return hn::LoadU(F32(), from);
  HWY_ALIGN float values[kFloats] = {};
  std::copy_n(from, count, values);
  return hn::Load(F32(), values);
}

// Some rows side by side, which hides the latency of the additions.
template <int kRows>
HWY_INLINE void group_values(const float* query, const float* const* rows, int64_t cols, float* values) {
  Vec sums[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(F32());
  for (int64_t c = 0; c < cols; c += kFloats) {
    const Vec q = load(query + c, cols - c);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r] = add_chi_square(q, load(rows[r] + c, cols - c), sums[r]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) values[r] = hn::GetLane(hn::SumOfLanes(F32(), sums[r]));
}

void ChiSquareValues(const float* query, const float* const* rows, int64_t count, int64_t cols, float* values) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) group_values<4>(query, rows + i, cols, values + i);
  for (; i < count; ++i) group_values<1>(query, rows + i, cols, values + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(ChiSquareValues);

void chi_square_values_cpu(const float* query, const float* const* rows, int64_t count, int64_t cols, float* values) {
  HWY_DYNAMIC_DISPATCH(ChiSquareValues)(query, rows, count, cols, values);
}

}  // namespace kith
#endif
