// Versions of an array that grows keep their values, whoever appends to which of them.
#include "core/growing_array.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

namespace kith {
namespace {

GrowingArray<int> with(const GrowingArray<int>& before, int first, int64_t count) {
  return before.appended(count, "a test", Resources(), [&](int* to) { std::iota(to, to + count, first); });
}

std::vector<int> values_of(const GrowingArray<int>& array) { return {array.begin(), array.end()}; }

std::vector<int> numbers_to(int end) {
  std::vector<int> numbers(static_cast<size_t>(end));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(GrowingArray, VersionsShareMemoryAndKeepTheirValues) {
  std::vector<GrowingArray<int>> versions(1);
  int64_t moves = 0;
  for (int i = 0; i < 20000; i += 10) {
    versions.push_back(with(versions.back(), i, 10));
    moves += versions.back().data() != versions[versions.size() - 2].data() ? 1 : 0;
  }
  EXPECT_LT(moves, 30);
  for (size_t i = 0; i < versions.size(); i += 97)
    EXPECT_EQ(values_of(versions[i]), numbers_to(10 * static_cast<int>(i)));
}

TEST(GrowingArray, WhoAppendsToAnOldVersionCopies) {
  const GrowingArray<int> old = with({}, 0, 5);
  const GrowingArray<int> one = with(old, 5, 3);
  const GrowingArray<int> other = with(old, 100, 3);
  EXPECT_EQ(one.data(), old.data());
  EXPECT_NE(other.data(), old.data());
  EXPECT_EQ(values_of(one), numbers_to(8));
  EXPECT_EQ(other[5], 100);
  EXPECT_EQ(values_of(old), numbers_to(5));
  EXPECT_EQ(values_of(with(old, 0, 0)), numbers_to(5));
}

// An array that was made whole has no room; one with more memory than values has.
TEST(GrowingArray, TakesTheMemoryThatIsThere) {
  HostArray<int> made(10, "a test", Resources());
  std::iota(made.begin(), made.end(), 0);
  const int* const memory = made.data();
  const GrowingArray<int> some(std::move(made), 8);
  EXPECT_EQ(some.data(), memory);
  EXPECT_EQ(with(some, 8, 2).data(), memory);
  EXPECT_NE(with(some, 8, 3).data(), memory);
}

TEST(GrowingArray, ThreadsThatAppendToOneVersionDoNotMeet) {
  const GrowingArray<int> old = with({}, 0, 100);
  std::vector<GrowingArray<int>> made(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] { made[static_cast<size_t>(t)] = with(old, 1000 * t, 50); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 8; ++t) {
    EXPECT_EQ(made[static_cast<size_t>(t)].size(), 150);
    for (int i = 0; i < 50; ++i) ASSERT_EQ(made[static_cast<size_t>(t)][100 + i], 1000 * t + i);
  }
}

}  // namespace
}  // namespace kith
