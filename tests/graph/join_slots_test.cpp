// Whose the slots of a join are.
#include "graph/build/nn_descent/join_slots.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace kith {
namespace {

TEST(JoinSlots, EverySampleHasItsOwnAndNobodyElseOne) {
  for (const int p : {1, 3, 4, 32, 33}) {
    for (int fresh = 0; fresh <= 2 * p; ++fresh) {
      for (const int old : {0, 1, 2 * p}) {
        const JoinSlots slots({fresh, old}, false);
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
        EXPECT_EQ(slots.count(), static_cast<int>(taken.size()));
        EXPECT_LE(slots.count(), JoinSlots::most(p));
      }
    }
  }
}

TEST(JoinSlots, InAMergeASampleHasOne) {
  const JoinSlots slots({5, 9}, true);
  EXPECT_EQ(slots.count(), 14);
  for (int sample = 0; sample < 14; ++sample) {
    EXPECT_EQ(slots.slot_for_new(sample), sample);
    EXPECT_EQ(slots.sample_of(sample), sample);
    EXPECT_EQ(slots.new_slot(sample, 5), sample);
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

TEST(JoinSlots, CountsFitAWord) {
  for (const JoinCounts counts : {JoinCounts{0, 0}, JoinCounts{1024, 3}, JoinCounts{7, 1024}}) {
    const JoinCounts back = unpack_counts(counts.packed());
    EXPECT_TRUE(back.fresh == counts.fresh && back.old == counts.old);
  }
}

// Every pair that meets is one of a row and a column, and small joins fit what a warp holds.
TEST(JoinSize, RowsAndColumnsCoverWhoMeets) {
  for (const bool across : {false, true}) {
    for (int fresh = 1; fresh <= 80; ++fresh) {
      for (int old = 0; old <= 80; ++old) {
        const JoinCounts counts{fresh, old};
        if (!counts.meet(across)) continue;
        const JoinShape shape = shape_of(counts, across);
        const int of_new = across ? shape.rows * shape.columns : shape.rows * (shape.rows - 1) / 2 + shape.rows * old;
        EXPECT_EQ(of_new, counts.pairs(across));
        EXPECT_LE(std::max(shape.first_row + shape.rows, shape.first_column + shape.columns), counts.all());
        EXPECT_EQ(across, (shape.first_row < fresh) != (shape.first_column < fresh));
        const JoinSize size = size_of(shape);
        if (size == JoinSize::large) continue;
        EXPECT_LE(shape.rows, small_rows(size));
        EXPECT_LE(shape.columns, kSmallColumns);
        EXPECT_LE(JoinSlots(counts, across).count(), small_samples(size));
        EXPECT_LE(counts.all(), small_samples(size));
      }
    }
  }
}

}  // namespace
}  // namespace kith
