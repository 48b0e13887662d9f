#include "kernels/select/smallest_values.hpp"

#include "core/cpu_target.hpp"
#include "core/random.hpp"
#include "kernels/forced_target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace kith {
namespace {

template <typename T>
std::vector<T> made(int64_t count, uint64_t seed, uint32_t distinct) {
  const CounterRng rng(seed, 3);
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<T>(static_cast<int64_t>(rng.below(static_cast<uint64_t>(i), distinct)) - distinct / 3));
  }
  return values;
}

template <typename T>
void expect_enough_and_few(const std::vector<T>& values, int64_t wanted) {
  const auto count = static_cast<int64_t>(values.size());
  std::vector<T> minima(static_cast<size_t>(smallest_groups(wanted)));
  const T limit = limit_of_smallest(values.data(), count, wanted, minima.data());
  std::vector<T> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  ASSERT_GE(limit, sorted[static_cast<size_t>(wanted - 1)]);
  std::vector<uint32_t> places(values.size() + kPlacesPast);
  const int64_t found = places_up_to(values.data(), count, limit, places.data());
  ASSERT_GE(found, wanted);
  ASSERT_EQ(found, std::count_if(values.begin(), values.end(), [&](T value) { return value <= limit; }));
  for (int64_t i = 0; i < found; ++i) {
    ASSERT_LE(values[places[static_cast<size_t>(i)]], limit);
    ASSERT_TRUE(i == 0 || places[static_cast<size_t>(i)] > places[static_cast<size_t>(i - 1)]);
  }
}

class SmallestValues : public ::testing::TestWithParam<std::string> {
  const ForcedTarget forced_{GetParam()};
};

TEST_P(SmallestValues, LimitHasEnoughBelowIt) {
  for (const int64_t count : {1, 2, 63, 64, 65, 500, 2000, 4097}) {
    for (const int64_t wanted : {1, 2, 15, 46, 200}) {
      if (wanted > count) continue;
      for (const uint32_t distinct : {1u, 3u, 100u, 1u << 30}) {
        SCOPED_TRACE(::testing::Message() << count << " " << wanted << " " << distinct);
        expect_enough_and_few(made<float>(count, 1, distinct), wanted);
        expect_enough_and_few(made<int32_t>(count, 2, distinct), wanted);
      }
    }
  }
}

TEST_P(SmallestValues, LimitHasFewMoreBelowItWhereValuesDiffer) {
  const auto values = made<float>(2000, 7, 1u << 30);
  std::vector<float> minima(static_cast<size_t>(smallest_groups(46)));
  const float limit = limit_of_smallest(values.data(), 2000, 46, minima.data());
  EXPECT_LT(std::count_if(values.begin(), values.end(), [&](float value) { return value <= limit; }), 80);
}

TEST_P(SmallestValues, TakesTheLargestNumbers) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  expect_enough_and_few<int32_t>(std::vector<int32_t>(300, kMost), 20);
  expect_enough_and_few<int32_t>(std::vector<int32_t>(300, -kMost), 20);
  std::vector<float> mixed(300, std::numeric_limits<float>::max());
  for (size_t i = 0; i < mixed.size(); i += 2) mixed[i] = std::numeric_limits<float>::lowest();
  expect_enough_and_few(mixed, 20);
  expect_enough_and_few(mixed, 200);
}

TEST_P(SmallestValues, CountsWhatComesBefore) {
  for (const int64_t count : {1, 2, 15, 16, 17, 46, 100, 333}) {
    for (const uint32_t distinct : {1u, 3u, 1u << 30}) {
      SCOPED_TRACE(::testing::Message() << count << " " << distinct);
      const auto values = made<float>(count, 5, distinct);
      std::vector<uint32_t> order(values.size());
      std::iota(order.begin(), order.end(), 0u);
      std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return values[a] < values[b]; });
      std::vector<uint32_t> expected(values.size());
      for (uint32_t i = 0; i < order.size(); ++i) expected[order[i]] = i;
      std::vector<uint32_t> before(values.size());
      count_before(values.data(), count, before.data());
      ASSERT_EQ(before, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, SmallestValues, ::testing::ValuesIn(cpu_targets()));

}  // namespace
}  // namespace kith
