#include "kernels/select/smallest_values.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select/smallest_values.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
constexpr int64_t kLanes = hn::MaxLanes(Tag<T>());
static_assert(kPlacesPast >= kLanes<uint32_t>);

// -1 if true.
template <typename T>
HWY_INLINE hn::Vec<Tag<int32_t>> ones(hn::Mask<Tag<T>> mask) {
  return hn::BitCast(Tag<int32_t>(), hn::VecFromMask(Tag<T>(), mask));
}

template <typename T>
HWY_INLINE hn::Mask<Tag<T>> not_above(const T* values, hn::Vec<Tag<T>> limit) {
  return hn::Not(hn::Gt(hn::LoadU(Tag<T>(), values), limit));
}

template <typename T>
HWY_INLINE int64_t count_up_to(const T* values, int64_t count, T limit) {
  const Tag<T> d;
  const auto most = hn::Set(d, limit);
  auto found = hn::Zero(Tag<int32_t>());
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) found = hn::Sub(found, ones<T>(not_above(values + i, most)));
  int64_t sum = hn::GetLane(hn::SumOfLanes(Tag<int32_t>(), found));
  for (; i < count; ++i) sum += values[i] <= limit ? 1 : 0;
  return sum;
}

template <typename T>
HWY_INLINE void lower(const T* values, int64_t count, T* minima) {
  const Tag<T> d;
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) {
    hn::StoreU(hn::Min(hn::LoadU(d, values + i), hn::LoadU(d, minima + i)), d, minima + i);
  }
  for (; i < count; ++i) minima[i] = std::min(values[i], minima[i]);
}

template <typename T>
struct Range {
  T low;
  T high;
  T nothing;  // 0, or NaN if a value is NaN or infinite
};

template <typename T>
HWY_INLINE Range<T> range_of(const T* values, int64_t count) {
  const Tag<T> d;
  auto least = hn::Set(d, values[0]);
  auto most = least;
  auto sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) {
    const auto some = hn::LoadU(d, values + i);
    least = hn::Min(least, some);
    most = hn::Max(most, some);
    sums = hn::Add(sums, hn::Sub(some, some));
  }
  Range<T> range{hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, most)),
                 hn::GetLane(hn::SumOfLanes(d, sums))};
  for (; i < count; ++i) {
    range = {std::min(range.low, values[i]), std::max(range.high, values[i]), range.nothing + (values[i] - values[i])};
  }
  return range;
}

// A value that at least `wanted` of the values do not exceed, and, if a limited number of halvings finds one, not more
// than `enough` of them.
template <typename T>
HWY_INLINE T halve(const T* values, int64_t count, Range<T> range, int64_t wanted, int64_t enough, int halvings) {
  for (int i = 0; i < halvings; ++i) {
    const T limit = range.low / 2 + range.high / 2;
    const int64_t found = count_up_to(values, count, limit);
    if (found < wanted) {
      range.low = limit;
    } else {
      range.high = limit;
      if (found <= enough) break;
    }
  }
  return range.high;
}

template <typename T>
HWY_INLINE T limit_of(const T* values, int64_t count, int64_t wanted, T* minima) {
  const int64_t groups = std::min(smallest_groups(wanted), count);
  std::copy_n(values, groups, minima);
  for (int64_t first = groups; first < count; first += groups) lower(values + first, std::min(groups, count - first), minima);
  return halve(minima, groups, range_of(minima, groups), wanted, wanted + wanted / 8 + 1, 16);
}

float RankValue(const float* values, int64_t count, int64_t rank) {
  const Range<float> range = range_of(values, count);
  if (!(range.nothing == 0.0f)) return std::numeric_limits<float>::infinity();
  return halve(values, count, range, rank, rank + rank / 16, 24);
}

int64_t KeepUpTo(float limit, float* values, uint32_t* beside, int64_t count) {
  const Tag<float> d;
  const Tag<uint32_t> du;
  const auto most = hn::Set(d, limit);
  int64_t kept = 0;
  int64_t i = 0;
  for (; i + kLanes<float> <= count; i += kLanes<float>) {
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

// Few values pass, and which cannot be predicted: several vectors are tested at once.
template <typename T>
HWY_INLINE int64_t places_of(const T* values, int64_t count, T limit, uint32_t* places) {
  const Tag<T> d;
  const Tag<uint32_t> d32;
  const auto most = hn::Set(d, limit);
  const auto ordinals = hn::Iota(d32, 0);
  int64_t found = 0;
  const auto put = [&](hn::Mask<Tag<T>> passed, int64_t first) HWY_ATTR {
    const auto numbers = hn::Add(ordinals, hn::Set(d32, static_cast<uint32_t>(first)));
    found += static_cast<int64_t>(hn::CompressStore(numbers, hn::RebindMask(d32, passed), d32, places + found));
  };
  constexpr int64_t kTogether = 4 * kLanes<T>;
  int64_t first = 0;
  for (; first + kTogether <= count; first += kTogether) {
    const auto a = not_above(values + first, most);
    const auto b = not_above(values + first + kLanes<T>, most);
    const auto c = not_above(values + first + 2 * kLanes<T>, most);
    const auto e = not_above(values + first + 3 * kLanes<T>, most);
    if (hn::AllFalse(d, hn::Or(hn::Or(a, b), hn::Or(c, e)))) continue;
    put(a, first);
    put(b, first + kLanes<T>);
    put(c, first + 2 * kLanes<T>);
    put(e, first + 3 * kLanes<T>);
  }
  for (; first < count; ++first) {
    places[found] = static_cast<uint32_t>(first);
    found += values[first] <= limit ? 1 : 0;
  }
  return found;
}

float LimitOfFloats(const float* values, int64_t count, int64_t wanted, float* minima) {
  return limit_of(values, count, wanted, minima);
}
int32_t LimitOfInts(const int32_t* values, int64_t count, int64_t wanted, int32_t* minima) {
  return limit_of(values, count, wanted, minima);
}
int64_t PlacesOfFloats(const float* values, int64_t count, float limit, uint32_t* places) {
  return places_of(values, count, limit, places);
}
int64_t PlacesOfInts(const int32_t* values, int64_t count, int32_t limit, uint32_t* places) {
  return places_of(values, count, limit, places);
}

// Some values beside all, a vector of these at a time: no sum waits for another.
template <int kValues>
HWY_INLINE void count_some(const float* values, int64_t count, const float* last, int64_t first, uint32_t* before) {
  const Tag<float> d;
  const Tag<int32_t> di;
  constexpr int64_t kWidth = kLanes<float>;
  hn::Vec<Tag<float>> mine[kValues];
  hn::Vec<Tag<int32_t>> sums[kValues];
#pragma GCC unroll 4
  for (int v = 0; v < kValues; ++v) {
    mine[v] = hn::Set(d, values[first + v]);
    sums[v] = hn::Zero(di);
  }
  int64_t at = 0;
  for (; at + kWidth <= first; at += kWidth) {
    const auto others = hn::LoadU(d, values + at);
#pragma GCC unroll 4
    for (int v = 0; v < kValues; ++v) sums[v] = hn::Sub(sums[v], ones<float>(hn::Le(others, mine[v])));
  }
  for (; at < std::min(first + kValues, count); at += kWidth) {  // here equal ones are before or after
    const auto others = at + kWidth <= count ? hn::LoadU(d, values + at) : hn::Load(d, last);
    const auto places = hn::Add(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(at)));
    for (int v = 0; v < kValues; ++v) {
      const auto earlier = hn::RebindMask(d, hn::Lt(places, hn::Set(di, static_cast<int32_t>(first + v))));
      const auto equal = hn::And(earlier, hn::Eq(others, mine[v]));
      sums[v] = hn::Sub(sums[v], ones<float>(hn::Or(hn::Lt(others, mine[v]), equal)));
    }
  }
  for (; at + kWidth <= count; at += kWidth) {
    const auto others = hn::LoadU(d, values + at);
#pragma GCC unroll 4
    for (int v = 0; v < kValues; ++v) sums[v] = hn::Sub(sums[v], ones<float>(hn::Lt(others, mine[v])));
  }
  if (at < count) {
    const auto others = hn::Load(d, last);
    for (int v = 0; v < kValues; ++v) sums[v] = hn::Sub(sums[v], ones<float>(hn::Lt(others, mine[v])));
  }
  for (int v = 0; v < kValues; ++v) before[first + v] = static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(di, sums[v])));
}

void CountBefore(const float* values, int64_t count, uint32_t* before) {
  constexpr int64_t kWidth = kLanes<float>;
  HWY_ALIGN float last[kWidth];  // what is no whole vector, before values that are before none
  std::fill(last, last + kWidth, std::numeric_limits<float>::infinity());
  const int64_t whole = count / kWidth * kWidth;
  std::copy_n(values + whole, count - whole, last);
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) count_some<4>(values, count, last, i, before);
  for (; i < count; ++i) count_some<1>(values, count, last, i, before);
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(LimitOfFloats);
HWY_EXPORT(LimitOfInts);
HWY_EXPORT(PlacesOfFloats);
HWY_EXPORT(PlacesOfInts);
HWY_EXPORT(CountBefore);
HWY_EXPORT(RankValue);
HWY_EXPORT(KeepUpTo);

float limit_of_smallest(const float* values, int64_t count, int64_t wanted, float* minima) {
  return HWY_DYNAMIC_DISPATCH(LimitOfFloats)(values, count, wanted, minima);
}
int32_t limit_of_smallest(const int32_t* values, int64_t count, int64_t wanted, int32_t* minima) {
  return HWY_DYNAMIC_DISPATCH(LimitOfInts)(values, count, wanted, minima);
}
int64_t places_up_to(const float* values, int64_t count, float limit, uint32_t* places) {
  return HWY_DYNAMIC_DISPATCH(PlacesOfFloats)(values, count, limit, places);
}
int64_t places_up_to(const int32_t* values, int64_t count, int32_t limit, uint32_t* places) {
  return HWY_DYNAMIC_DISPATCH(PlacesOfInts)(values, count, limit, places);
}
void count_before(const float* values, int64_t count, uint32_t* before) {
  HWY_DYNAMIC_DISPATCH(CountBefore)(values, count, before);
}
float rank_value(const float* values, int64_t count, int64_t rank) {
  return HWY_DYNAMIC_DISPATCH(RankValue)(values, count, rank);
}

int64_t keep_up_to(float limit, float* values, uint32_t* beside, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(KeepUpTo)(limit, values, beside, count);
}

}  // namespace kith
#endif
