#include "graph/build/nn_descent/nn_descent.hpp"

#include <kith/error.hpp>

#include "exact/exact_check.hpp"
#include "graph/lists/graph_lists_cpu.hpp"
#include "graph/lists/graph_share.hpp"
#include "graph/lists/working_lists.hpp"
#include "kernels/forced_target.hpp"
#include "ranks/local_ranks.hpp"
#include "ranks/mutual_reads.hpp"
#include "reference/data.hpp"
#include "reference/graph.hpp"
#include "reference/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kith {
namespace {

BuildOutcome descend(const PairRows& rows, const DescentParams& params, const ControlRows& control, WorkingLists& lists,
                     const Resources& resources) {
  GraphListsCpu on_cpu(rows, params.metric, &control, lists, resources);
  return run_descent(on_cpu, params, resources);
}

using reference::make_floats;
using reference::Shape;

// Rounds on the steps themselves, without a control.
reference::Lists after(const MatrixView& x, Metric metric, const DescentRules& rules, int64_t length, int64_t rounds,
                       const Resources& resources, const uint32_t* order = nullptr) {
  const PairRows rows(x, key_kind(metric), resources);
  WorkingLists lists(x.rows(), length, resources);
  if (rules.boundary > 0) {  // some rows of the own set, which are OLD
    const std::vector<int64_t> ids = reference::own_set_ids(x.rows(), rules.boundary, length / 3);
    add_named_rows(rows, {ids.data(), x.rows(), length / 3, length / 3}, lists, resources);
    survey_lists(lists, 1, metric, Flags::set, resources);
  }
  add_random_rows(rows, rules.boundary, rules.seed, lists, resources);
  const auto steps = make_descent_steps_cpu(rows, rules, lists, resources, {.order = order});
  ProgressMeter meter("descend", 1, resources);
  for (int64_t round = 0; round < rounds; ++round) {
    steps->sample(round, meter);
    steps->join(round, meter);
    steps->merge(meter);
  }
  return reference::lists_of(lists);
}

TEST(NnDescent, RoundsAreThoseOfTheReference) {
  for (const Shape shape : {Shape::gaussian, Shape::far_mean, Shape::near_duplicates, Shape::all_equal,
                            Shape::with_zeros, Shape::huge, Shape::mixed_norms}) {
    for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product, Metric::l1, Metric::chi_square}) {
      SCOPED_TRACE(::testing::Message() << shape << " " << name_of(metric));
      const auto x = reference::without_sign(make_floats(shape, 150, 20, 3));
      for (const bool all : {false, true}) {
        DescentRules rules{.samples = 5, .inbox_slots = 8, .all_pairs = all, .seed = 4};
        reference::Lists expected = after(x.view(), metric, rules, 12, 0, on_cpu());
        for (int64_t round = 0; round < 3; ++round) reference::descend(x, metric, rules, round, 12, expected);
        EXPECT_EQ(reference::difference(after(x.view(), metric, rules, 12, 3, on_cpu()), expected), "");
        rules.random_lists = true;  // floats are compared as they are
        EXPECT_EQ(reference::difference(after(x.view(), metric, rules, 12, 3, on_cpu()), expected), "");
      }
    }
  }
}

// As many samples as are taken by default: panels of every width are full, or not.
TEST(NnDescent, RoundsDoNotDependOnTheInstructionSet) {
  const auto bytes = reference::make_bytes(700, 128, 1);
  const auto floats = reference::without_sign(make_floats(Shape::gaussian, 700, 37, 2));
  DescentRules rules{.samples = 32, .inbox_slots = 32, .seed = 4};
  for (const Metric metric : {Metric::l2, Metric::chi_square}) {
    for (const MatrixView& all : {bytes.view(), floats.view()}) {
      const MatrixView x = all.slice(0, reference::fewer_if_sanitized(700, 250));
      std::optional<reference::Lists> first;
      for (const std::string& target : cpu_targets()) {
        const ForcedTarget forced(target);
        for (const bool random_lists : {false, true}) {
          rules.random_lists = random_lists;
          const reference::Lists lists = after(x, metric, rules, 64, 2, on_cpu(2));
          if (!first) first = lists;
          EXPECT_EQ(reference::difference(lists, *first), "") << target << " " << name_of(metric) << " " << x.cols();
        }
      }
    }
  }
}

TEST(NnDescent, BytesAndBitsAreThoseOfTheReference) {
  const auto bytes = reference::make_bytes(120, 21, 3);
  const DescentRules rules{.samples = 4, .inbox_slots = 8, .seed = 4};
  for (const Metric metric : {Metric::l2, Metric::hamming, Metric::inner_product}) {
    reference::Lists expected = after(bytes.view(), metric, rules, 10, 0, on_cpu());
    for (int64_t round = 0; round < 3; ++round) {
      reference::descend(reference::widened(bytes), metric, rules, round, 10, expected);
    }
    EXPECT_EQ(reference::difference(after(bytes.view(), metric, rules, 10, 3, on_cpu()), expected), "") << name_of(metric);
  }
}

TEST(NnDescent, OnlyPairsAcrossMeetInAMerge) {
  const auto x = make_floats(Shape::gaussian, 140, 9, 3);
  const DescentRules rules{.samples = 4, .inbox_slots = 8, .boundary = 60, .seed = 4};
  const reference::Lists begun = after(x.view(), Metric::l2, rules, 10, 0, on_cpu());
  for (size_t row = 0; row < begun.size(); ++row) {
    for (const uint64_t neighbor : begun[row]) {
      EXPECT_EQ(is_old(neighbor), (row_of(without_flag(neighbor)) < 60) == (row < 60));
    }
  }
  reference::Lists expected = begun;
  for (int64_t round = 0; round < 5; ++round) {
    reference::descend(x, Metric::l2, rules, round, 10, expected);
    EXPECT_EQ(reference::difference(after(x.view(), Metric::l2, rules, 10, round + 1, on_cpu()), expected), "") << round;
  }
  EXPECT_NE(reference::difference(begun, expected), "");
  for (size_t row = 0; row < expected.size(); ++row) {  // nobody new of the own set
    for (const uint64_t neighbor : expected[row]) {
      const uint32_t other = row_of(without_flag(neighbor));
      const auto same = [&](uint64_t there) { return without_flag(there) == without_flag(neighbor); };
      EXPECT_TRUE((other < 60) != (row < 60) || std::any_of(begun[row].begin(), begun[row].end(), same));
    }
  }
}

TEST(NnDescent, DoesNotDependOnThreadsOrOrder) {
  const auto x = make_floats(Shape::gaussian, 1500, 16, 3);
  const DescentRules rules{.samples = 8, .inbox_slots = 16, .seed = 4};
  const reference::Lists one = after(x.view(), Metric::l2, rules, 20, 4, on_cpu(1));
  EXPECT_EQ(reference::difference(one, after(x.view(), Metric::l2, rules, 20, 4, on_cpu(7))), "");
  std::vector<uint32_t> order(1500);
  for (uint32_t i = 0; i < 1500; ++i) order[i] = (i * 7 + 3) % 1500;
  EXPECT_EQ(reference::difference(one, after(x.view(), Metric::l2, rules, 20, 4, on_cpu(2), order.data())), "");
}

TEST(NnDescent, StartsWithDistinctOthers) {
  for (const int64_t rows : {22, 23, 63, 64, 65, 128, 640}) {  // around and at multiples of the list length
    const auto x = make_floats(Shape::gaussian, rows, 4, 3);
    const reference::Lists lists = after(x.view(), Metric::l2, {.samples = 4, .seed = 9}, 21, 0, on_cpu());
    std::set<uint32_t> named;
    for (int64_t row = 0; row < rows; ++row) {
      std::set<uint32_t> others;
      for (const uint64_t neighbor : lists[static_cast<size_t>(row)]) others.insert(row_of(neighbor));
      EXPECT_EQ(others.size(), 21u);
      EXPECT_FALSE(others.contains(static_cast<uint32_t>(row)));
      named.insert(others.begin(), others.end());
    }
    EXPECT_EQ(named.size(), static_cast<size_t>(rows));  // nobody is left out
  }
}

TEST(NnDescent, ReachesWhatItIsAskedForAndSaysWhenItDoesNot) {
  const auto x = make_floats(Shape::gaussian, 2000, 8, 3);
  const Resources resources = on_cpu();
  const PairRows rows(x.view(), KeyKind::l2, resources);
  const ControlRows control(x.view(), Metric::l2, 10, 1, resources);
  DescentParams params;
  params.k = 10;
  params.rules = {.samples = 16, .inbox_slots = 32, .seed = 1};
  params.recall = 0.95;
  WorkingLists lists(2000, 32, resources);
  add_random_rows(rows, 0, 1, lists, resources);
  const BuildOutcome outcome = descend(rows, params, control, lists, resources);
  EXPECT_TRUE(outcome.reached);
  EXPECT_GE(outcome.recall->recall, 0.95);
  for (size_t i = 1; i < outcome.rounds.size(); ++i) EXPECT_LE(outcome.rounds[i].phi, outcome.rounds[i - 1].phi);

  WorkingLists others(2000, 32, resources);
  add_random_rows(rows, 0, 1, others, resources);
  params.iterations = 1;
  const BuildOutcome stopped = descend(rows, params, control, others, resources);
  EXPECT_FALSE(stopped.reached);
  EXPECT_EQ(stopped.rounds.size(), 1u);
}

// To be polled while ranks run, so that ranks that wait for ever fail the test.
std::function<void()> fail_in_a_minute() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  return [deadline] {
    if (std::chrono::steady_clock::now() > deadline) throw InvalidState("the ranks hang");
  };
}

// The places of a round, among ranks, where one of them throws.
enum class Place { before_gather, after_gather, after_merge, after_sum, after_give, nowhere };

// One round among three ranks, as run_descent() makes it. `thrower` throws at a place.
void round_among_ranks(const MatrixView& x, bool are_parts, Place place, int thrower) {
  const MutualReads reads(3);
  const auto work = [&](Communicator& ranks) {
    const auto pass = [&](Place here) {
      if (here == place && ranks.rank() == thrower) throw InvalidState("thrown in a round");
    };
    const Resources resources = on_cpu(1);
    const GraphShare share(ranks, x.rows(), are_parts ? &reads : nullptr);
    const PairRows rows(x, KeyKind::l2, resources);
    WorkingLists memory(x.rows(), 12, resources);
    GraphListsCpu lists(rows, Metric::l2, nullptr, memory, resources, &share);
    lists.add_random_rows(4, 0);
    const DescentRules rules{.samples = 5, .inbox_slots = 8, .seed = 4};
    const auto steps = make_descent_steps_cpu(rows, rules, memory, resources,
                                              {.share = &share, .gathered_rows = share.room_rows()});
    ProgressMeter meter("descend", 1, resources);
    steps->sample(0, meter);
    (void)share.sum(steps->join(0, meter));
    pass(Place::before_gather);
    steps->gather();
    pass(Place::after_gather);
    const int64_t entered = steps->merge(meter);
    pass(Place::after_merge);
    EXPECT_GT(share.sum(entered), 0);
    pass(Place::after_sum);
    lists.give_lists();
    pass(Place::after_give);
    share.meet();
  };
  run_named_ranks({"first", "second", "third"}, work, fail_in_a_minute());
}

TEST(NnDescent, WhatARankThrowsInARoundEndsAll) {
  const auto x = make_floats(Shape::gaussian, 200, 8, 3);
  for (const bool are_parts : {false, true}) {
    EXPECT_NO_THROW(round_among_ranks(x.view(), are_parts, Place::nowhere, 0));
    for (const Place place : {Place::before_gather, Place::after_gather, Place::after_merge, Place::after_sum,
                              Place::after_give}) {
      for (const int thrower : {0, 1, 2}) {
        try {
          round_among_ranks(x.view(), are_parts, place, thrower);
          ADD_FAILURE() << "nothing was thrown";
        } catch (const InvalidState& error) {
          EXPECT_STREQ(error.what(), "thrown in a round")
              << (are_parts ? "parts, " : "ranks, ") << static_cast<int>(place) << ", thrown by " << thrower;
        }
      }
    }
  }
}

// Whichever rank hears of it first, at any of the times that it asks.
TEST(NnDescent, RoundsAmongRanksAreCancelledAtAnyTime) {
  const auto floats = make_floats(Shape::gaussian, 200, 8, 3);
  const MatrixView x = floats.view();
  DescentParams params;
  params.k = 6;
  params.rules = {.samples = 5, .inbox_slots = 8, .seed = 4};
  params.iterations = 2;
  params.delta = 0;
  for (const int canceller : {0, 1}) {
    bool ended = false;
    int times = 0;
    for (; !ended && times < 10000; ++times) {
      std::atomic<int> asked{0};
      const auto work = [&](Communicator& ranks) {
        const bool cancels = ranks.rank() == canceller;
        const Resources resources = on_cpu(1).with_cancel({}, [&] { return cancels && ++asked > times; });
        const GraphShare share(ranks, x.rows());
        const PairRows rows(x, KeyKind::l2, resources);
        WorkingLists memory(x.rows(), 12, resources);
        GraphListsCpu lists(rows, Metric::l2, nullptr, memory, resources, &share);
        lists.add_random_rows(4, 0);
        DescentParams own = params;
        own.gathered_rows = share.room_rows();
        EXPECT_EQ(run_descent(lists, own, resources).rounds.size(), 2u);
      };
      try {
        run_named_ranks({"first", "second"}, work, fail_in_a_minute());
        ended = true;
      } catch (const Cancelled&) {
      }
    }
    EXPECT_TRUE(ended);
    EXPECT_GT(times, 10);  // it asked in every step
  }
}

}  // namespace
}  // namespace kith
