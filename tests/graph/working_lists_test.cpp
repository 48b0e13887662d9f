#include "graph/lists/working_lists.hpp"

#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "exact/exact_check.hpp"
#include "graph/lists/control_rows.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace kith {
namespace {

TEST(WorkingLists, HoldTheFirstOfAllOffersInAnyOrder) {
  const CounterRng rng(1, 2);
  for (const int64_t length : {1, 5, 64}) {
    std::vector<uint64_t> offers;
    for (uint64_t i = 0; i < 300; ++i) {
      offers.push_back(pack_neighbor(ordered_key(static_cast<float>(rng.word(i) % 40)), rng.word(i + 1000) % 30));
    }
    std::set<uint64_t> distinct(offers.begin(), offers.end());
    std::vector<uint64_t> expected(distinct.begin(), distinct.end());
    expected.resize(static_cast<size_t>(length), kPadding);
    WorkingLists lists(8, length, on_cpu());
    EXPECT_EQ(lists.largest_key(3), std::numeric_limits<float>::infinity());
    for (int64_t row = 0; row < 8; ++row) {
      std::rotate(offers.begin(), offers.begin() + 41, offers.end());
      for (const uint64_t offer : offers) lists.offer(row, offer);
      EXPECT_EQ(std::vector<uint64_t>(lists.list(row), lists.list(row) + length), expected);
      EXPECT_EQ(lists.threshold(row), ordered_of(expected.back()));
    }
  }
}

TEST(WorkingLists, TakeManyAtOnce) {
  const CounterRng rng(4, 2);
  for (const int64_t length : {1, 5, 64}) {
    WorkingLists one(1, length, on_cpu());
    WorkingLists many(1, length, on_cpu());
    for (uint64_t turn = 0; turn < 6; ++turn) {  // the first meets an empty list
      std::vector<uint64_t> offers;
      for (uint64_t i = 0; i < static_cast<uint64_t>(length); ++i) {
        offers.push_back(pack_neighbor(ordered_key(static_cast<float>(rng.word(100 * turn + i) % 40)), rng.word(i) % 30));
      }
      std::sort(offers.begin(), offers.end());
      offers.erase(std::unique(offers.begin(), offers.end()), offers.end());
      for (const uint64_t offer : offers) one.offer(0, offer);
      many.offer_sorted(0, offers.data(), static_cast<int64_t>(offers.size()));
      EXPECT_TRUE(std::equal(one.list(0), one.list(0) + length, many.list(0)));
      EXPECT_EQ(one.threshold(0), many.threshold(0));
    }
  }
}

TEST(WorkingLists, TakeOffersOfManyThreads) {
  const Resources resources = on_cpu(8);
  WorkingLists lists(3, 50, resources);
  ProgressMeter meter("offer", 1, resources);
  parallel_for(1000, meter, resources, [&](int64_t task, int) {
    for (int64_t row = 0; row < 3; ++row) {
      lists.offer(row, pack_neighbor(ordered_key(static_cast<float>((task * 7) % 1000)), static_cast<uint32_t>(task)));
    }
  });
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t j = 0; j < 50; ++j) EXPECT_EQ(key_of_ordered(ordered_of(lists.list(row)[j])), static_cast<float>(j));
  }
}

TEST(WorkingLists, AnOldNeighbourIsKnownAndKeepsItsPlace) {
  WorkingLists lists(1, 3, on_cpu());
  const uint64_t a = pack_neighbor(ordered_key(1), 5);
  const uint64_t b = pack_neighbor(ordered_key(1), 7);
  EXPECT_TRUE(lists.offer(0, a));
  EXPECT_EQ(survey_lists(lists, 3, Metric::l2, Flags::set, on_cpu()).updates, 1);
  EXPECT_FALSE(lists.offer(0, a));
  EXPECT_TRUE(lists.offer(0, b));
  EXPECT_EQ(lists.list(0)[0], a | kOldFlag);  // the flag does not take part in the order
  EXPECT_EQ(lists.list(0)[1], b);
  const ListSurvey survey = survey_lists(lists, 3, Metric::l2, Flags::keep, on_cpu());
  EXPECT_EQ(survey.updates, 1);
  EXPECT_EQ(survey.phi, 2.0);
}

TEST(ControlRows, MeasureWhatListsHold) {
  const auto x = reference::make_floats(reference::Shape::near_duplicates, 1500, 6, 1);
  const ControlRows control(x.view(), Metric::l2, 12, 5, on_cpu());
  EXPECT_EQ(control.rows().size(), 1000u);
  const reference::Result truth = reference::knn(x, x, {13, Metric::l2});
  WorkingLists lists(1500, 12, on_cpu());
  EXPECT_EQ(control.measure(lists).recall, 0);
  for (const uint32_t row : control.rows()) {
    for (size_t j = 0; j < 13; ++j) {
      const int64_t other = truth.ids[row * 13 + j];
      if (other == row || j % 3 == 2) continue;  // 8 or 9 of 12
      lists.offer(row, pack_neighbor(ordered_key(truth.distances[row * 13 + j]), static_cast<uint32_t>(other)));
    }
  }
  const RecallEstimate estimate = control.measure(lists);
  EXPECT_GT(estimate.recall, 0.6);
  EXPECT_LT(estimate.recall, 0.8);
  EXPECT_GT(estimate.error, 0);
  EXPECT_LT(estimate.error, 0.01);
}

TEST(ControlRows, KnowWhereOthersAreAsNearAsTheLast) {
  auto x = reference::make_floats(reference::Shape::gaussian, 300, 4, 1);
  for (int64_t i = 100; i < 140; ++i) std::copy_n(x.row(100), 4, x.row(i));  // 39 others at distance 0
  const ControlRows control(x.view(), Metric::l2, 10, 5, on_cpu());
  int64_t alone = 0;
  for (int64_t i = 0; i < 300; ++i) {
    EXPECT_EQ(control.neighbors(i).size(), 10u);
    if (i < 100 || i >= 140) {
      alone += control.has_ties(i) ? 0 : 1;
      continue;
    }
    EXPECT_TRUE(control.has_ties(i)) << i;
    EXPECT_EQ(control.last_key(i), ordered_key(0.0f));
  }
  EXPECT_GT(alone, 100);
}

TEST(ControlRows, AreAllRowsWhereThereAreFew) {
  const auto x = reference::make_floats(reference::Shape::gaussian, 40, 3, 1);
  const ControlRows control(x.view(), Metric::l2, 100, 5, on_cpu());  // more than there are
  EXPECT_EQ(control.rows().size(), 40u);
  WorkingLists lists(40, 39, on_cpu());
  const reference::Result truth = reference::knn(x, x, {40, Metric::l2});
  for (int64_t row = 0; row < 40; ++row) {
    for (int64_t j = 0; j < 40; ++j) {
      const auto at = static_cast<size_t>(row * 40 + j);
      if (truth.ids[at] == row) continue;
      lists.offer(row, pack_neighbor(ordered_key(truth.distances[at]), static_cast<uint32_t>(truth.ids[at])));
    }
  }
  const RecallEstimate estimate = control.measure(lists);
  EXPECT_EQ(estimate.recall, 1);
  EXPECT_EQ(estimate.recall_at_10, 1);
  EXPECT_EQ(estimate.error, 0);
}

}  // namespace
}  // namespace kith
