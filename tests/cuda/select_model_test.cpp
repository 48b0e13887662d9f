// The cores of the selection and sort kernels, run on the CPU by blocks of threads.
#include "cuda/thread_block.hpp"

#include "core/ordered_key.hpp"
#include "kernels/select/select_block_cuda.hpp"
#include "kernels/select/sort_block_cuda.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace kith {
namespace {

// The k smallest (key, row) of `keys`, in row order: what a list holds after all rows went by.
std::vector<uint64_t> expected_list(const std::vector<uint32_t>& keys, size_t k) {
  std::vector<uint64_t> all;
  for (size_t row = 0; row < keys.size(); ++row) all.push_back(pack_neighbor(keys[row], static_cast<uint32_t>(row)));
  std::sort(all.begin(), all.end());
  all.resize(std::min(k, all.size()));
  std::sort(all.begin(), all.end(), [](uint64_t a, uint64_t b) { return row_of(a) < row_of(b); });
  return all;
}

struct Feed {
  int threads;
  size_t k;
  size_t tile;
};

std::vector<uint64_t> selected_list(const std::vector<uint32_t>& keys, const Feed& feed) {
  std::vector<uint64_t> list(feed.k, kPadding);
  uint32_t bound = 0;
  for (size_t first = 0; first < keys.size(); first += feed.tile) {
    const SelectTask task{list.data(),
                          &bound,
                          keys.data() + first,
                          static_cast<int64_t>(std::min(feed.tile, keys.size() - first)),
                          static_cast<int64_t>(std::min(first, feed.k)),
                          static_cast<int64_t>(feed.k),
                          static_cast<uint32_t>(first)};
    run_block(feed.threads, [&](ThreadBlock& block) { BlockSelector<ThreadBlock>(block, task).run(); });
  }
  const size_t have = std::min(keys.size(), feed.k);
  for (size_t i = have; i < feed.k; ++i) EXPECT_EQ(list[i], kPadding) << "place " << i << " was written";
  list.resize(have);
  return list;
}

void expect_selects(const std::vector<uint32_t>& keys) {
  const size_t n = keys.size();
  for (const size_t k : {size_t{1}, size_t{2}, size_t{7}, n / 2 + 1, n - 1, n, n + 5}) {
    if (k == 0) continue;
    for (const size_t tile : {size_t{1}, size_t{5}, size_t{64}, n}) {
      if (n / tile > 16) continue;
      for (const int threads : {1, 4}) {
        SCOPED_TRACE(::testing::Message() << "n " << n << " k " << k << " tile " << tile << " threads " << threads);
        ASSERT_EQ(selected_list(keys, {threads, k, tile}), expected_list(keys, k));
      }
    }
  }
}

TEST(CudaSelectModel, RandomKeys) {
  std::mt19937 random(1);
  for (const size_t n : {1, 2, 33, 70}) {
    std::vector<uint32_t> keys(n);
    for (uint32_t& key : keys) key = static_cast<uint32_t>(random());
    expect_selects(keys);
  }
}

TEST(CudaSelectModel, ManyTies) {
  std::mt19937 random(2);
  std::vector<uint32_t> keys(70);
  for (uint32_t& key : keys) key = 0x80000000u + random() % 3;
  expect_selects(keys);
}

TEST(CudaSelectModel, AllEqualSortedAndReversed) {
  std::vector<uint32_t> equal(66, 0xBF800000u);
  expect_selects(equal);
  std::vector<uint32_t> sorted(66);
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = static_cast<uint32_t>(i * 0x01010101u);
  expect_selects(sorted);
  std::reverse(sorted.begin(), sorted.end());
  expect_selects(sorted);
}

TEST(CudaSelectModel, NansAndInfinitiesComeLast) {
  std::vector<uint32_t> keys;
  for (int i = 0; i < 40; ++i)
    keys.push_back(i % 4 == 0 ? ordered_key(1.5f) : i % 4 == 1 ? ordered_key(HUGE_VALF) : kNanKey);
  expect_selects(keys);
}

TEST(CudaSelectModel, RowsWithNumbersOfTheirOwn) {
  std::mt19937 random(6);
  std::vector<uint32_t> keys(60);
  std::vector<uint32_t> numbers(60);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = random() % 9;
    numbers[i] = static_cast<uint32_t>(7 * i + 3);
  }
  for (const size_t k : {1, 20, 70}) {
    std::vector<uint64_t> list(k, kPadding);
    uint32_t bound = 0;
    for (size_t first = 0; first < keys.size(); first += 25) {
      const SelectTask task{list.data(),
                            &bound,
                            keys.data() + first,
                            static_cast<int64_t>(std::min<size_t>(25, keys.size() - first)),
                            static_cast<int64_t>(std::min(first, k)),
                            static_cast<int64_t>(k),
                            0,
                            numbers.data() + first};
      run_block(4, [&](ThreadBlock& block) { BlockSelector<ThreadBlock>(block, task).run(); });
    }
    std::vector<uint64_t> expected = expected_list(keys, k);
    for (uint64_t& neighbor : expected) neighbor = pack_neighbor(ordered_of(neighbor), numbers[row_of(neighbor)]);
    list.resize(std::min(k, keys.size()));
    EXPECT_EQ(list, expected);
  }
}

TEST(CudaSelectModel, LongTileWithFullBlocks) {
  std::mt19937 random(3);
  std::vector<uint32_t> keys(5000);
  for (uint32_t& key : keys) key = static_cast<uint32_t>(random() % 4096) << 10;
  for (const size_t k : {10, 100, 1000}) {
    for (const size_t tile : {2048, 5000}) {
      ASSERT_EQ(selected_list(keys, {16, k, tile}), expected_list(keys, k)) << k << " " << tile;
    }
  }
}

TEST(CudaSortModel, SortsEveryLength) {
  std::mt19937_64 random(4);
  for (int64_t n = 1; n <= 70; ++n) {
    for (const int threads : {1, 5}) {
      std::vector<uint64_t> list(static_cast<size_t>(n));
      for (uint64_t& value : list) value = random() % 50;
      std::vector<uint64_t> sorted = list;
      std::sort(sorted.begin(), sorted.end());
      run_block(threads, [&](ThreadBlock& block) { sort_block(block, list.data(), n); });
      ASSERT_EQ(list, sorted) << n << " values, " << threads << " threads";
    }
  }
}

TEST(CudaSortModel, SortsLongLists) {
  std::mt19937_64 random(5);
  for (const int64_t n : {255, 256, 257, 1000, 4097}) {
    std::vector<uint64_t> list(static_cast<size_t>(n));
    for (uint64_t& value : list) value = random();
    std::vector<uint64_t> sorted = list;
    std::sort(sorted.begin(), sorted.end());
    run_block(16, [&](ThreadBlock& block) { sort_block(block, list.data(), n); });
    ASSERT_EQ(list, sorted) << n;
  }
}

TEST(CudaSortModel, SortsListsOfSortedRuns) {
  std::mt19937_64 random(6);
  for (const int64_t n : {63, 64, 65, 200, 1000}) {
    std::vector<uint64_t> list(static_cast<size_t>(n));
    for (uint64_t& value : list) value = random();
    std::vector<uint64_t> sorted = list;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t start = 0; start < n; start += 64) {
      std::sort(list.begin() + start, list.begin() + std::min(start + 64, n));
    }
    run_block(8, [&](ThreadBlock& block) { sort_block(block, list.data(), n, 64); });
    ASSERT_EQ(list, sorted) << n;
  }
}

TEST(CudaSortModel, LeavesTheRestOfTheListAlone) {
  std::vector<uint64_t> list = {3, 2, 1, kPadding, 0};
  run_block(2, [&](ThreadBlock& block) { sort_block(block, list.data(), 3); });
  EXPECT_EQ(list, (std::vector<uint64_t>{1, 2, 3, kPadding, 0}));
}

}  // namespace
}  // namespace kith
