// Whose the slots of a join are.
#include "graph/nn_descent/join_slots_cuda.hpp"

#include <gtest/gtest.h>

#include <set>

namespace kith {
namespace {

TEST(JoinSlots, EverySampleHasItsOwnAndNobodyElseOne) {
  for (const int p : {1, 3, 4, 32, 33}) {
    for (int fresh = 0; fresh <= 2 * p; ++fresh) {
      for (const int old : {0, 1, 2 * p}) {
        const JoinSlots slots{p, {fresh, old}};
        const JoinCounts& counts = slots.counts;
        std::set<int> taken;
        for (int sample = 0; sample < counts.all(); ++sample) {
          const int slot = slots.slot_for_new(sample);
          ASSERT_TRUE(slot < slots.count() && slots.sample_of(slot) == sample);
          ASSERT_TRUE(taken.insert(slot).second);
          if (sample >= fresh) continue;
          ASSERT_EQ(slot, slots.new_slot(sample, 0));
          const int other = slots.new_slot(sample, fresh);
          ASSERT_TRUE(other < slots.count() && slots.sample_of(other) == sample);
          ASSERT_TRUE(taken.insert(other).second);
        }
        int all = 0;
        for (int slot = 0; slot < slots.count(); ++slot) all += slots.sample_of(slot) < counts.all() ? 1 : 0;
        EXPECT_EQ(all, static_cast<int>(taken.size()));
      }
    }
  }
}

TEST(JoinSlots, CountsWhoMeets) {
  EXPECT_EQ((JoinCounts{4, 3}.pairs(false)), 6 + 12);
  EXPECT_EQ((JoinCounts{4, 3}.pairs(true)), 12);
  EXPECT_FALSE((JoinCounts{0, 9}.meet(false)));
  EXPECT_FALSE((JoinCounts{1, 0}.meet(false)));
  EXPECT_TRUE((JoinCounts{2, 0}.meet(false)));
  EXPECT_FALSE((JoinCounts{2, 0}.meet(true)));
  EXPECT_TRUE((JoinCounts{1, 1}.meet(true)));
}

}  // namespace
}  // namespace kith
