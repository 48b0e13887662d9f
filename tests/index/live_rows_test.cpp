// Live rows against a plain list of flags.
#include "index/live_rows.hpp"

#include "core/memory_budget.hpp"
#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kith {
namespace {

void expect_same(const LiveRows& live, const std::vector<bool>& expected) {
  ASSERT_EQ(live.stored(), static_cast<int64_t>(expected.size()));
  EXPECT_EQ(live.count(), std::count(expected.begin(), expected.end(), true));
  for (size_t row = 0; row < expected.size(); ++row) ASSERT_EQ(live.has(static_cast<int64_t>(row)), expected[row]);
}

TEST(LiveRows, AnyOrderOfAddsAndRemovalsIsAPlainList) {
  const Resources resources{ResourceOptions()};
  const CounterRng rng(5, 0);
  uint64_t draw = 0;
  for (int round = 0; round < 20; ++round) {
    LiveRows live;
    std::vector<bool> expected;
    for (int step = 0; step < 20; ++step) {
      const auto count = static_cast<int64_t>(rng.below(draw++, 150));
      live = live.grown(count, resources);
      expected.resize(expected.size() + static_cast<size_t>(count), true);
      const auto dies = [&](const auto& kill) {
        for (int64_t i = 0; i < count / 3 && !expected.empty(); ++i) {
          const auto row = rng.below(draw++, static_cast<uint32_t>(expected.size()));
          kill(int64_t{row});
          expected[row] = false;
        }
      };
      live = live.without(dies, resources);
    }
    expect_same(live, expected);
    // A filter of the live rows, every third of them, becomes one of the stored rows.
    std::vector<uint64_t> third(static_cast<size_t>(KeptRows::words_for(live.count())));
    for (int64_t i = 0; i < live.count(); i += 3) third[static_cast<size_t>(i / 64)] |= uint64_t{1} << (i % 64);
    const HostArray<uint64_t> spread = live.spread(third.data(), resources);
    int64_t number = 0;
    for (int64_t row = 0; row < live.stored(); ++row) {
      ASSERT_EQ(keeps(spread.data(), row), live.has(row) && number % 3 == 0) << row;
      number += live.has(row);
    }
  }
}

TEST(LiveRows, TakeABitForEachRowOnceSomeAreDead) {
  ResourceOptions options;
  options.host_memory_limit = 1 << 20;
  const Resources resources(options);
  const LiveRows all(100000);
  EXPECT_EQ(all.bits(), nullptr);
  EXPECT_EQ(all.filter().form(), RowFilter::Form::none);
  const LiveRows same = all.without([](const auto&) {}, resources);
  EXPECT_EQ(same.bits(), nullptr);
  EXPECT_EQ(resources.host_memory()->used(), 0);
  const LiveRows fewer = all.without([](const auto& kill) { kill(99999), kill(7), kill(7); }, resources);
  EXPECT_EQ(fewer.dead(), 2);
  EXPECT_EQ(resources.host_memory()->used(), fewer.bytes());
  EXPECT_LE(fewer.bytes(), 100000 / 8 + 8);
  EXPECT_FALSE(fewer.wants_compaction());
  EXPECT_TRUE(LiveRows(10).without([](const auto& kill) { kill(1), kill(2); }, resources).wants_compaction());
}

}  // namespace
}  // namespace kith
