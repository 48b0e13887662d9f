// How the samples of a join lie, and whose the slots are.
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
        ASSERT_LE(counts.end(), sample_places(p));
        ASSERT_EQ(counts.first_old() % kSampleGroup, 0);
        std::set<int> taken;
        int samples = 0;
        for (int place = 0; place < sample_places(p); ++place) {
          if (!counts.is_sample(place)) continue;
          ++samples;
          const bool is_new = place < fresh;
          const int slot = slots.slot_for_new(place);
          ASSERT_TRUE(slots.is_slot(slot) && slots.sample_of(slot) == place);
          ASSERT_TRUE(taken.insert(slot).second);
          if (!is_new) continue;
          ASSERT_EQ(slot, slots.new_slot(place, false));
          const int other = slots.new_slot(place, true);
          ASSERT_TRUE(slots.is_slot(other) && slots.sample_of(other) == place);
          ASSERT_TRUE(taken.insert(other).second);
        }
        EXPECT_EQ(samples, fresh + old);
        int all = 0;
        for (int slot = 0; slot < slots.count(); ++slot) all += slots.is_slot(slot) ? 1 : 0;
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
