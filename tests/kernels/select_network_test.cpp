// The merging and sorting networks of selection, proved by the zero-one principle: a network that sorts all inputs of
// zeros and ones sorts everything. A merge has (L + 1)(R + 1) such inputs; 64 of them run at once, one in each bit.
#include "kernels/select/lane_array.hpp"
#include "kernels/select/warp_select.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace kith {
namespace {

using Comparators = std::vector<std::pair<int, int>>;

Comparators merge_network(int left, int right, bool sort_right = true) {
  Comparators network;
  visit_merge(0, left, right, sort_right, [&](int low, int high) { network.emplace_back(low, high); });
  return network;
}

Comparators sort_network(int n) {
  Comparators network;
  visit_sort(0, n, [&](int low, int high) { network.emplace_back(low, high); });
  return network;
}

// The parallel steps that a network needs: a comparator comes after those that share a wire with it.
int depth_of(const Comparators& network, int wires) {
  std::vector<int> depth(static_cast<size_t>(wires), 0);
  for (const auto& [low, high] : network) {
    const int step = std::max(depth[static_cast<size_t>(low)], depth[static_cast<size_t>(high)]) + 1;
    depth[static_cast<size_t>(low)] = depth[static_cast<size_t>(high)] = step;
  }
  return wires == 0 ? 0 : *std::max_element(depth.begin(), depth.end());
}

// Bit b of a word is the value of input b.
void run_bits(const Comparators& network, std::vector<uint64_t>& wires) {
  for (const auto& [low, high] : network) {
    uint64_t& a = wires[static_cast<size_t>(low)];
    uint64_t& b = wires[static_cast<size_t>(high)];
    const uint64_t smaller = a & b;
    b |= a;
    a = smaller;
  }
}

// Wires 0 .. sorted - 1 of every input never decrease, and none of the wires after is smaller than any of them.
void expect_sorted(const std::vector<uint64_t>& wires, size_t sorted) {
  for (size_t i = 0; i + 1 < sorted; ++i) ASSERT_EQ(wires[i] & ~wires[i + 1], 0u) << "wire " << i;
  for (size_t i = sorted; i < wires.size(); ++i) ASSERT_EQ(wires[sorted - 1] & ~wires[i], 0u) << "wire " << i;
}

// An input has `zeros_left` zeros, then ones, on the left; the right likewise.
void expect_merges(const Comparators& network, int left, int right, bool sort_right) {
  SCOPED_TRACE(::testing::Message() << "merge of " << left << " and " << right);
  const int inputs = (left + 1) * (right + 1);
  for (int first = 0; first < inputs; first += 64) {
    std::vector<uint64_t> wires(static_cast<size_t>(left + right), 0);
    for (int bit = 0; bit < std::min(64, inputs - first); ++bit) {
      const int zeros_left = (first + bit) / (right + 1);
      const int zeros_right = (first + bit) % (right + 1);
      for (int i = zeros_left; i < left; ++i) wires[static_cast<size_t>(i)] |= uint64_t{1} << bit;
      for (int i = zeros_right; i < right; ++i) wires[static_cast<size_t>(left + i)] |= uint64_t{1} << bit;
    }
    run_bits(network, wires);
    ASSERT_NO_FATAL_FAILURE(expect_sorted(wires, static_cast<size_t>(sort_right ? left + right : left)));
  }
}

// What a schedule does to wires.
template <size_t kCount>
Comparators comparators_of(const std::array<LaneMove, kCount>& moves) {
  Comparators network;
  for (const LaneMove& move : moves) {
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const int partner = lane ^ move.mask;
      const bool lower = !move.is_butterfly() || (lane & move.upper) == 0;
      if (lower) network.emplace_back(move.low * kWarpLanes + lane, move.high * kWarpLanes + partner);
    }
  }
  return network;
}

// Two networks are the same when every wire meets the same wires in the same order.
std::map<int, std::vector<std::pair<int, int>>> meetings(const Comparators& network) {
  std::map<int, std::vector<std::pair<int, int>>> met;
  for (const auto& comparator : network) {
    met[comparator.first].push_back(comparator);
    met[comparator.second].push_back(comparator);
  }
  return met;
}

TEST(OddNetwork, MergesAllSmallSizes) {
  for (int left = 1; left <= 40; ++left) {
    for (int right = 1; right <= 40; ++right) {
      for (const bool sort_right : {true, false}) {
        expect_merges(merge_network(left, right, sort_right), left, right, sort_right);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(OddNetwork, MergeTakesThePapersSteps) {
  for (int left = 1; left <= 70; ++left) {
    for (int right = 1; right <= 70; ++right) {
      ASSERT_EQ(depth_of(merge_network(left, right), left + right), log2_ceil(std::max(left, right)) + 1)
          << left << " and " << right;
    }
  }
}

TEST(OddNetwork, FiveAndThreeAsInTheFigure) {
  // Figure 1 by hand: mirrored pairs; the left 5 wires are padded in front to 8, so (0, 4) is the only pair four apart,
  // then pairs two and one apart among wires 1 .. 4; the right 3 are padded behind to 4.
  const Comparators expected = {{4, 5}, {3, 6}, {2, 7}, {0, 4}, {1, 3}, {2, 4}, {1, 2}, {3, 4}, {5, 7}, {5, 6}};
  EXPECT_EQ(merge_network(5, 3), expected);
  EXPECT_EQ(depth_of(expected, 8), 4);
}

TEST(OddNetwork, EverySortUpToTwentyWires) {
  for (int n = 1; n <= 20; ++n) {
    const Comparators network = sort_network(n);
    for (uint64_t first = 0; first < uint64_t{1} << n; first += 64) {
      std::vector<uint64_t> wires(static_cast<size_t>(n), 0);
      for (uint64_t bit = 0; bit < 64; ++bit) {
        for (int i = 0; i < n; ++i) wires[static_cast<size_t>(i)] |= ((first + bit) >> i & 1) << bit;
      }
      run_bits(network, wires);
      ASSERT_NO_FATAL_FAILURE(expect_sorted(wires, wires.size())) << n << " wires";
    }
  }
}

// A sort is two sorts and a merge, so it is right if its merges are.
void expect_sorts_by_induction(int n) {
  if (n <= 1) return;
  const int left = sort_split(n);
  expect_merges(merge_network(left, n - left), left, n - left, true);
  expect_sorts_by_induction(left);
  expect_sorts_by_induction(n - left);
  Comparators parts = sort_network(left);
  for (const auto& [low, high] : sort_network(n - left)) parts.emplace_back(low + left, high + left);
  for (const auto& comparator : merge_network(left, n - left)) parts.push_back(comparator);
  ASSERT_EQ(sort_network(n), parts) << n;
}

TEST(OddNetwork, SortsByInduction) {
  for (const int n : {31, 33, 45, 64, 96, 100, 128, 160, 256, 512, 1024}) expect_sorts_by_induction(n);
}

TEST(OddNetwork, SortTakesThePapersSteps) {
  for (int n = 1; n <= 256; ++n) {
    const int c = log2_ceil(n);
    ASSERT_LE(depth_of(sort_network(n), n), (c * c + c) / 2) << n;
  }
  for (const int n : {2, 4, 8, 32, 64, 96, 128, 256}) {
    const int c = log2_ceil(n);
    EXPECT_EQ(depth_of(sort_network(n), n), (c * c + c) / 2) << n;
  }
}

template <int kLeft, int kRight, bool kSortRight>
void expect_merge_schedule() {
  const Comparators lanes = comparators_of(MergeSchedule<kLeft, kRight, kSortRight>::kMoves);
  const int left = kLeft * kWarpLanes;
  const int right = kRight * kWarpLanes;
  EXPECT_EQ(meetings(lanes), meetings(merge_network(left, right, kSortRight))) << left << " and " << right;
  expect_merges(lanes, left, right, kSortRight);
}

template <int kRegisters>
void expect_sort_schedule() {
  EXPECT_EQ(meetings(comparators_of(SortSchedule<kRegisters>::kMoves)), meetings(sort_network(kRegisters * kWarpLanes)))
      << kRegisters << " registers";
  expect_sorts_by_induction(kRegisters * kWarpLanes);
}

// WarpSelect's own merges, and the merge of two warps' queues.
template <int kQueue>
void expect_queue() {
  expect_merge_schedule<kQueue, thread_queue_length(kQueue * kWarpLanes), false>();
  expect_merge_schedule<kQueue, kQueue, false>();
}

TEST(LaneSchedule, MergesOfWarpSelect) {
  expect_queue<1>();
  expect_queue<2>();
  expect_queue<4>();
  expect_queue<8>();
  expect_queue<16>();
  expect_queue<32>();
  expect_merge_schedule<64, 8, false>();
}

TEST(SlowLaneSchedule, MergeOfTheTwoLongestWarpQueues) { expect_merge_schedule<64, 64, false>(); }

TEST(LaneSchedule, MergesInsideSorts) {
  expect_merge_schedule<1, 1, true>();
  expect_merge_schedule<1, 2, true>();
  expect_merge_schedule<2, 2, true>();
  expect_merge_schedule<4, 4, true>();
  expect_merge_schedule<8, 8, true>();
  expect_merge_schedule<16, 16, true>();
  expect_merge_schedule<3, 5, true>();
  expect_merge_schedule<7, 2, true>();
}

TEST(LaneSchedule, Sorts) {
  expect_sort_schedule<1>();
  expect_sort_schedule<2>();
  expect_sort_schedule<3>();
  expect_sort_schedule<4>();
  expect_sort_schedule<8>();
  expect_sort_schedule<16>();
  expect_sort_schedule<32>();
}

TEST(LaneSchedule, LeftHalfIsTheRestOfAMerge) {
  const auto half = comparators_of(LeftHalfSchedule<8>::kMoves);
  const auto whole = comparators_of(MergeSchedule<8, 8, false>::kMoves);
  ASSERT_EQ(whole.size(), half.size() + 8 * kWarpLanes);
  EXPECT_EQ((Comparators{whole.begin() + 8 * kWarpLanes, whole.end()}), half);
}

}  // namespace
}  // namespace kith
