#include "kernels/lists/rank_value.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lists/rank_value.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
constexpr int64_t kFloats = hn::MaxLanes(F32());

int64_t count_up_to(const float* values, int64_t count, float most) {
  const F32 d;
  const auto limit = hn::Set(d, most);
  const hn::Rebind<int32_t, F32> di;
  auto totals = hn::Zero(di);
  int64_t i = 0;
  for (; i + kFloats <= count; i += kFloats) {
    totals = hn::Sub(totals, hn::VecFromMask(di, hn::RebindMask(di, hn::Le(hn::LoadU(d, values + i), limit))));
  }
  int64_t total = hn::GetLane(hn::SumOfLanes(di, totals));
  for (; i < count; ++i) total += values[i] <= most;
  return total;
}

float RankValue(const float* values, int64_t count, int64_t rank) {
  constexpr int kPasses = 24;
  const float infinity = std::numeric_limits<float>::infinity();
  float least = infinity;
  float most = -infinity;
  const F32 d;
  int64_t i = 0;
  if (count >= kFloats) {
    auto low = hn::LoadU(d, values);
    auto high = low;
    auto sum = hn::Zero(d);  // not a number where a value is none, or infinite
    for (; i + kFloats <= count; i += kFloats) {
      const auto v = hn::LoadU(d, values + i);
      low = hn::Min(low, v);
      high = hn::Max(high, v);
      sum = hn::Add(sum, hn::Sub(v, v));
    }
    if (!(hn::GetLane(hn::SumOfLanes(d, sum)) == 0.0f)) return infinity;
    least = hn::GetLane(hn::MinOfLanes(d, low));
    most = hn::GetLane(hn::MaxOfLanes(d, high));
  }
  for (; i < count; ++i) {
    if (!(values[i] - values[i] == 0.0f)) return infinity;
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
  }
  const int64_t enough = rank + rank / 16;
  for (int pass = 0; pass < kPasses; ++pass) {
    const float middle = 0.5f * least + 0.5f * most;
    const int64_t below = count_up_to(values, count, middle);
    if (below < rank) {
      least = middle;
      continue;
    }
    most = middle;
    if (below <= enough) break;
  }
  return most;
}

int64_t KeepUpTo(float limit, float* values, uint32_t* beside, int64_t count) {
  const F32 d;
  const hn::Rebind<uint32_t, F32> du;
  const auto most = hn::Set(d, limit);
  int64_t kept = 0;
  int64_t i = 0;
  for (; i + kFloats <= count; i += kFloats) {
    const auto v = hn::LoadU(d, values + i);
    const auto above = hn::Gt(v, most);
    if (hn::AllTrue(d, above)) continue;
    const auto stays = hn::Not(above);
    const auto b = hn::LoadU(du, beside + i);
    hn::StoreU(hn::Compress(v, stays), d, values + kept);
    hn::StoreU(hn::Compress(b, hn::RebindMask(du, stays)), du, beside + kept);
    kept += static_cast<int64_t>(hn::CountTrue(d, stays));
  }
  for (; i < count; ++i) {
    values[kept] = values[i];
    beside[kept] = beside[i];
    kept += !(values[i] > limit);
  }
  return kept;
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(RankValue);
HWY_EXPORT(KeepUpTo);

float rank_value(const float* values, int64_t count, int64_t rank) {
  return HWY_DYNAMIC_DISPATCH(RankValue)(values, count, rank);
}

int64_t keep_up_to(float limit, float* values, uint32_t* beside, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(KeepUpTo)(limit, values, beside, count);
}

}  // namespace kith
#endif
