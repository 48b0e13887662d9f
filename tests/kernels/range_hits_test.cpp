#include "kernels/select/range_hits.hpp"
#include "core/ordered_key.hpp"
#include "exact/exact_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace kith {
namespace {

// Puts `count` neighbours, from `first` on, into the room there is.
void put_hits(RangeHits& hits, int slot, int64_t query, uint64_t first, int64_t count) {
  while (count > 0) {
    const std::span<uint64_t> room = hits.room(slot, query, count);
    const int64_t here = room.empty() ? count : static_cast<int64_t>(room.size());
    ASSERT_LE(here, count);
    std::iota(room.begin(), room.end(), first);
    hits.taken(slot, here);
    first += static_cast<uint64_t>(here);
    count -= here;
  }
}

std::vector<uint64_t> hits_of_query(const CollectedHits& hits, int64_t query) {
  return {hits.neighbors() + hits.offsets()[query], hits.neighbors() + hits.offsets()[query + 1]};
}

TEST(RangeHits, CollectsWhatWasPutAndWhatWasAdded) {
  const Resources resources = on_cpu(2);
  RangeHits hits(resources);
  const std::vector<uint64_t> some = {9, 4, 1u << 30};
  put_hits(hits, 0, 2, 100, 5000);  // more than a first segment
  hits.add(1, 2, some.data(), 3);
  put_hits(hits, 0, 2, 20000, 7);
  (void)hits.room(0, 0, 10);  // for nothing
  hits.taken(0, 0);
  put_hits(hits, 0, 3, 50, 2);
  hits.add(0, 3, some.data(), 3);
  EXPECT_EQ(hits.counted(), 5015);
  EXPECT_FALSE(hits.overflowed());
  ProgressMeter meter("test", 1, resources);
  const CollectedHits collected = hits.collect(4, meter);
  std::vector<uint64_t> expected(5007);
  std::iota(expected.begin(), expected.begin() + 5000, 100);
  std::iota(expected.begin() + 5000, expected.end(), 20000);
  expected.insert(expected.end(), some.begin(), some.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(hits_of_query(collected, 0), std::vector<uint64_t>());
  EXPECT_EQ(hits_of_query(collected, 1), std::vector<uint64_t>());
  EXPECT_EQ(hits_of_query(collected, 2), expected);
  EXPECT_EQ(hits_of_query(collected, 3), (std::vector<uint64_t>{4, 9, 50, 51, 1u << 30}));
  EXPECT_EQ(hits.collect(4, meter).size(), 0);
}

// Keys of rows that follow each other, beside packed neighbours, of several threads; with memory to sort from the runs
// and without.
TEST(RangeHits, CollectsKeys) {
  for (const int64_t limit : {int64_t{0}, int64_t{1} << 19}) {
    const Resources resources = limit == 0 ? on_cpu(2) : on_cpu(2, limit);
    RangeHits hits(resources);
    std::vector<float> keys(RangeHits::kMostKeys);
    std::vector<std::vector<uint64_t>> expected(3);
    for (const int64_t count : {1, 2, 333, 512, 1024}) {
      for (int64_t query = 0; query < 3; query += 2) {
        for (int slot = 0; slot < 2; ++slot) {
          const uint32_t row = static_cast<uint32_t>(count * 10 + slot * 2000);
          for (int64_t i = 0; i < count; ++i) {
            keys[static_cast<size_t>(i)] = static_cast<float>((i * 7919 + slot) % 100) - 50;
            expected[static_cast<size_t>(query)].push_back(
                pack_neighbor(ordered_key(keys[static_cast<size_t>(i)]), row + static_cast<uint32_t>(i)));
          }
          hits.add_keys(slot, query, row, keys.data(), count);
        }
      }
    }
    const uint64_t packed = pack_neighbor(ordered_key(-7.5f), 3);
    hits.add(1, 2, &packed, 1);
    expected[2].push_back(packed);
    for (auto& own : expected) std::sort(own.begin(), own.end());
    EXPECT_EQ(hits.counted(), static_cast<int64_t>(expected[0].size() + expected[2].size()));
    ASSERT_FALSE(hits.overflowed());
    ProgressMeter meter("test", 1, resources);
    const CollectedHits collected = hits.collect(3, meter);
    for (int64_t query = 0; query < 3; ++query) {
      EXPECT_EQ(hits_of_query(collected, query), expected[static_cast<size_t>(query)]);
    }
  }
}

TEST(RangeHits, RoomThatNothingWasPutIntoIsGivenAgain) {
  const Resources resources = on_cpu(1, 40000);
  RangeHits hits(resources);
  for (int64_t query = 0; query < 20000; ++query) {  // as a scan that finds nothing does
    (void)hits.room(0, query, 64);
    hits.taken(0, 0);
  }
  EXPECT_FALSE(hits.overflowed());
  put_hits(hits, 0, 7, 1, 100);
  EXPECT_FALSE(hits.overflowed());
}

TEST(RangeHits, CountsWhatHasNoRoom) {
  const Resources resources = on_cpu(1, 30000);
  RangeHits hits(resources);
  put_hits(hits, 0, 0, 1, 1000);
  EXPECT_FALSE(hits.overflowed());
  put_hits(hits, 0, 1, 1, 9000);
  EXPECT_TRUE(hits.overflowed());
  EXPECT_TRUE(hits.room(0, 2, 5).empty());
  put_hits(hits, 0, 2, 1, 10);
  EXPECT_EQ(hits.counted(), 10010);
  hits.clear();
  EXPECT_EQ(hits.counted(), 0);
  put_hits(hits, 0, 0, 1, 1000);
  EXPECT_FALSE(hits.overflowed());
}

}  // namespace
}  // namespace kith
