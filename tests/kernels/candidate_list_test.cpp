#include "kernels/select/candidate_list.hpp"

#include "core/ordered_key.hpp"
#include "core/random.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

// Pushes rows with true keys `keys` and bounds of the given width, as a scan does, and returns the k nearest.
std::vector<uint64_t> select(const std::vector<float>& keys, int64_t k, float width) {
  const int64_t capacity = CandidateList::capacity_for(k);
  std::vector<std::byte> memory(static_cast<size_t>(capacity * CandidateList::kBytesPerCandidate));
  std::vector<std::byte> scratch_memory(static_cast<size_t>(CandidateScratch::bytes_for(k)));
  const CandidateScratch scratch(scratch_memory.data(), k);
  CandidateList list(memory.data(), k);
  list.reset(INFINITY);
  const RowScorer score = [&](const uint32_t* rows, int64_t count, float* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = keys[rows[i]];
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    const float error = width * std::abs(std::sin(static_cast<float>(i)));  // the guess is off, within the bound
    if (keys[i] + error - width > list.threshold()) continue;
    list.push(keys[i] + error - width, keys[i] + error + width, static_cast<uint32_t>(i));
    EXPECT_LE(list.size(), capacity);
    if (!list.has_room()) {
      list.make_room(scratch, score);
      EXPECT_TRUE(list.has_room());
    }
  }
  std::vector<uint64_t> best(static_cast<size_t>(k), kPadding);
  list.finish(best.data(), 0, scratch, score);
  return best;
}

std::vector<uint64_t> expected(const std::vector<float>& keys, int64_t k) {
  std::vector<uint64_t> all(static_cast<size_t>(k), kPadding);
  for (size_t i = 0; i < keys.size(); ++i) all.push_back(pack_neighbor(ordered_key(keys[i]), static_cast<uint32_t>(i)));
  std::sort(all.begin(), all.end());
  all.resize(static_cast<size_t>(k));
  return all;
}

// The same in exact mode, which must never ask for a key; counts the rows that were pushed.
std::vector<uint64_t> select_exactly(const std::vector<float>& keys, int64_t k, int64_t* pushed) {
  std::vector<std::byte> memory(
      static_cast<size_t>(CandidateList::capacity_for(k) * CandidateList::kBytesPerCandidate));
  std::vector<std::byte> scratch_memory(static_cast<size_t>(CandidateScratch::bytes_for(k)));
  const CandidateScratch scratch(scratch_memory.data(), k);
  CandidateList list(memory.data(), k);
  list.reset(INFINITY, CandidateList::Keys::exact);
  const RowScorer score = [&](const uint32_t*, int64_t, float*) { ADD_FAILURE() << "a key was asked for"; };
  *pushed = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] > list.limit()) continue;
    list.push_exact(keys[i], static_cast<uint32_t>(i));
    ++*pushed;
    if (!list.has_room()) list.make_room(scratch, score);
  }
  std::vector<uint64_t> best(static_cast<size_t>(k), kPadding);
  list.finish(best.data(), 0, scratch, score);
  return best;
}

RC_GTEST_PROP(CandidateList, FindsTheKNearestOfExactKeys, (uint64_t seed)) {
  const int64_t k = *rc::gen::inRange<int64_t>(1, 80);
  const int64_t rows = *rc::gen::inRange<int64_t>(0, 2000);
  const auto levels = *rc::gen::inRange<uint32_t>(1, 1000);
  const CounterRng rng(seed, 0);
  std::vector<float> keys;
  for (int64_t i = 0; i < rows; ++i) keys.push_back(static_cast<float>(rng.below(static_cast<uint64_t>(i), levels)));
  int64_t pushed = 0;
  RC_ASSERT(select_exactly(keys, k, &pushed) == expected(keys, k));
}

TEST(CandidateList, EqualExactKeysCostNothing) {
  const std::vector<float> keys(10000, 3.0f);
  int64_t pushed = 0;
  EXPECT_EQ(select_exactly(keys, 10, &pushed), expected(keys, 10));
  EXPECT_LE(pushed, CandidateList::capacity_for(10));
}

TEST(CandidateList, AnotherListsThresholdLeavesTies) {
  std::vector<std::byte> memory(
      static_cast<size_t>(CandidateList::capacity_for(4) * CandidateList::kBytesPerCandidate));
  CandidateList list(memory.data(), 4);
  list.reset(INFINITY, CandidateList::Keys::exact);
  list.share_threshold(5.0f);
  EXPECT_EQ(list.limit(), 5.0f);  // the rows that gave it may come later
  list.reset(5.0f, CandidateList::Keys::exact_after_ties);
  EXPECT_LT(list.limit(), 5.0f);  // those came before
  list.reset(5.0f);
  EXPECT_EQ(list.limit(), 5.0f);
}

TEST(CandidateList, KnowsTheKthRowOnceKeysWereComputed) {
  constexpr int64_t kNearest = 4;
  std::vector<std::byte> memory(
      static_cast<size_t>(CandidateList::capacity_for(kNearest) * CandidateList::kBytesPerCandidate));
  std::vector<std::byte> scratch_memory(static_cast<size_t>(CandidateScratch::bytes_for(kNearest)));
  CandidateList list(memory.data(), kNearest);
  list.reset(INFINITY);
  EXPECT_EQ(list.kth_row(), CandidateList::kNoRow);
  const RowScorer score = [](const uint32_t* rows, int64_t count, float* keys) {
    for (int64_t i = 0; i < count; ++i) keys[i] = rows[i] == 9 ? 1.0f : 2.0f;  // rows 9, 0, 1, 2
  };
  for (uint32_t row = 0; list.has_room(); ++row) list.push(0, 3, row);  // bounds that decide nothing
  list.make_room(CandidateScratch(scratch_memory.data(), kNearest), score);
  EXPECT_EQ(list.kth_row(), 2u);
  list.reset(INFINITY);
  EXPECT_EQ(list.kth_row(), CandidateList::kNoRow);
}

RC_GTEST_PROP(CandidateList, FindsTheKNearestWithAnyBounds, (uint64_t seed)) {
  const int64_t k = *rc::gen::inRange<int64_t>(1, 80);
  const int64_t rows = *rc::gen::inRange<int64_t>(0, 2000);
  const auto levels = *rc::gen::inRange<uint32_t>(1, 1000);  // few levels: many ties
  const float width = *rc::gen::element(0.0f, 0.5f, 3.0f, 1000.0f);
  const CounterRng rng(seed, 0);
  std::vector<float> keys;
  for (int64_t i = 0; i < rows; ++i) keys.push_back(static_cast<float>(rng.below(static_cast<uint64_t>(i), levels)));
  RC_ASSERT(select(keys, k, width) == expected(keys, k));
}

TEST(CandidateList, SortedReversedAndEqualKeys) {
  for (const int64_t k : {1, 10, 100}) {
    std::vector<float> keys(3000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<float>(i);
    EXPECT_EQ(select(keys, k, 0.7f), expected(keys, k));
    std::reverse(keys.begin(), keys.end());
    EXPECT_EQ(select(keys, k, 0.7f), expected(keys, k));
    std::fill(keys.begin(), keys.end(), 5.0f);
    EXPECT_EQ(select(keys, k, 0.7f), expected(keys, k));
  }
}

TEST(CandidateList, NanKeysComeLastButAreKept) {
  std::vector<float> keys(500, NAN);
  keys[400] = 1.0f;
  keys[450] = INFINITY;
  EXPECT_EQ(select(keys, 5, 0.0f), expected(keys, 5));
  std::vector<float> all_nan(500, NAN);
  EXPECT_EQ(select(all_nan, 3, 0.0f), expected(all_nan, 3));
}

TEST(CandidateList, AGroupPassesByItsValues) {
  constexpr int64_t kK = 4;
  std::vector<std::byte> memory(
      static_cast<size_t>(CandidateList::capacity_for(kK) * CandidateList::kBytesPerCandidate));
  CandidateList list(memory.data(), kK);
  list.reset(INFINITY);
  const float values[] = {3.0f, 1.0f, NAN, 2.0f, 2.5f};
  const float bounds[] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f};
  list.push_group(values, 0b01110, {10.0f, bounds}, 100);
  ASSERT_EQ(list.size(), 3);
  EXPECT_EQ(list.rows()[0], 101u);
  EXPECT_EQ(list.lower()[0], 10.5f);
  EXPECT_EQ(list.upper()[0], 11.5f);
  EXPECT_EQ(list.rows()[1], 102u);
  EXPECT_EQ(list.rows()[2], 103u);
}

TEST(MergeNeighbors, KeepsTheSmallestOfBoth) {
  std::vector<uint64_t> best = {2, 5, kPadding};
  std::vector<uint64_t> fresh = {9, 1, 4, 7};
  std::vector<uint64_t> scratch(3);
  merge_neighbors(best.data(), 3, fresh.data(), 4, scratch.data());
  EXPECT_EQ(best, (std::vector<uint64_t>{1, 2, 4}));
}

}  // namespace
}  // namespace kith
