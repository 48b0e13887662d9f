// Highway uses the processor's instruction (NEON's CNT, AVX-512's VPOPCNTQ) or looks half bytes up in a table. Four
// independent sums hide the latency.
#include "rows/count_bits.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rows/count_bits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

int64_t CountBits(const uint64_t* words, int64_t count) {
  const hn::ScalableTag<uint64_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kCountSums = 4;
  auto first = hn::Zero(d);
  auto second = hn::Zero(d);
  auto third = hn::Zero(d);
  auto fourth = hn::Zero(d);
  int64_t i = 0;
  for (; i + kCountSums * lanes <= count; i += kCountSums * lanes) {
    first = hn::Add(first, hn::PopulationCount(hn::LoadU(d, words + i)));
    second = hn::Add(second, hn::PopulationCount(hn::LoadU(d, words + i + lanes)));
    third = hn::Add(third, hn::PopulationCount(hn::LoadU(d, words + i + 2 * lanes)));
    fourth = hn::Add(fourth, hn::PopulationCount(hn::LoadU(d, words + i + 3 * lanes)));
  }
  const auto all = hn::Add(hn::Add(first, second), hn::Add(third, fourth));
  auto total = static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(d, all)));
  for (; i < count; ++i) total += std::popcount(words[i]);
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(CountBits);

int64_t count_bits(const uint64_t* words, int64_t count) { return HWY_DYNAMIC_DISPATCH(CountBits)(words, count); }

}  // namespace kith
#endif
