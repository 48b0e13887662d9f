// Ids of rows: looked up both ways through any order of adds and removals, against a plain list.
#include "index/id_table.hpp"

#include <kith/error.hpp>

#include "core/random.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace kith {
namespace {

void expect_same(const IdTable& table, const std::vector<int64_t>& ids) {
  ASSERT_EQ(table.live().stored(), static_cast<int64_t>(ids.size()));
  std::vector<int64_t> rows(ids.size());
  std::iota(rows.begin(), rows.end(), 0);
  for (size_t row = 0; row < ids.size(); ++row) {
    EXPECT_EQ(table.id(static_cast<int64_t>(row)), ids[row]);
    EXPECT_EQ(table.row(ids[row]), static_cast<int64_t>(row));
  }
  rows.push_back(-1);
  table.rows_to_ids(rows.data(), static_cast<int64_t>(rows.size()));
  EXPECT_EQ(rows.back(), -1);
  rows.pop_back();
  EXPECT_EQ(rows, ids);
}

IdTable without(const IdTable& table, std::vector<int64_t>* ids, const std::vector<size_t>& gone) {
  std::vector<uint8_t> keep(ids->size(), 1);
  for (const size_t row : gone) keep[row] = 0;
  const auto rows = static_cast<int64_t>(keep.size());
  const Resources resources;
  const KeptRows kept(RowFilter::mask(keep.data(), rows), rows, resources);
  for (size_t row = keep.size(); row-- > 0;) {
    if (keep[row] == 0) ids->erase(ids->begin() + static_cast<std::ptrdiff_t>(row));
  }
  return table.kept(kept, resources);
}

TEST(IdTable, RowsWithoutIdsAreTheirNumbersAndTakeNoMemory) {
  const Resources resources;
  const IdTable table = IdTable().added(nullptr, 5, resources).added(nullptr, 3, resources);
  EXPECT_TRUE(table.plain());
  EXPECT_EQ(table.bytes(), 0);
  EXPECT_EQ(table.next_id(), 8);
  expect_same(table, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(table.row(8), -1);
  EXPECT_EQ(table.row(-1), -1);
}

TEST(IdTable, ARemovedIdNeverComesBackByItself) {
  const Resources resources;
  std::vector<int64_t> ids = {0, 1, 2};
  IdTable table = IdTable().added(nullptr, 3, resources);
  table = without(table, &ids, {1, 2});
  table = table.added(nullptr, 2, resources);
  expect_same(table, {0, 3, 4});
  ids = {0, 3, 4};
  table = without(table, &ids, {0, 1, 2});
  EXPECT_EQ(table.live().stored(), 0);
  expect_same(table.added(nullptr, 2, resources), {5, 6});
  const int64_t own[] = {1};
  expect_same(table.added(own, 1, resources), {1});
}

TEST(IdTable, BadIdsAreNamedAndNothingIsAdded) {
  const Resources resources;
  const int64_t own[] = {7, 3};
  const IdTable table = IdTable().added(own, 2, resources);
  const auto refused = [&](std::vector<int64_t> ids) -> std::string {
    try {
      (void)table.added(ids.data(), static_cast<int64_t>(ids.size()), resources);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(refused({9, 3}), ::testing::HasSubstr("id 3 of row 1 is in the index already"));
  EXPECT_THAT(refused({9, -1}), ::testing::HasSubstr("id -1 of row 1 is not allowed"));
  EXPECT_THAT(refused({9, 11, 9}), ::testing::HasSubstr("id 9 is given to two rows"));
  EXPECT_THAT(refused({INT64_MAX}), ::testing::HasSubstr("not allowed"));
  expect_same(table, {7, 3});
}

TEST(IdTable, TheLargestIdLeavesNoneBehindIt) {
  const Resources resources;
  const int64_t own[] = {INT64_MAX - 1};
  const IdTable table = IdTable().added(own, 1, resources);
  EXPECT_THROW((void)table.added(nullptr, 1, resources), InvalidArgument);
  const int64_t other[] = {4};
  expect_same(table.added(other, 1, resources), {INT64_MAX - 1, 4});
}

TEST(IdTable, AnyOrderOfAddsAndRemovalsIsAPlainList) {
  const Resources resources;
  const CounterRng rng(3, 0);
  uint64_t draw = 0;
  for (int round = 0; round < 20; ++round) {
    IdTable table;
    std::vector<int64_t> ids;
    for (int step = 0; step < 40; ++step) {
      const uint32_t what = rng.below(draw++, 4);
      const auto count = static_cast<int64_t>(1 + rng.below(draw++, 30));
      if (what == 0 && !ids.empty()) {
        std::vector<size_t> gone;
        for (int64_t i = 0; i < count; ++i) gone.push_back(rng.below(draw++, static_cast<uint32_t>(ids.size())));
        std::sort(gone.begin(), gone.end());
        gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
        table = without(table, &ids, gone);
      } else if (what == 1) {
        for (int64_t i = 0; i < count; ++i) ids.push_back(table.next_id() + i);
        table = table.added(nullptr, count, resources);
      } else {
        std::vector<int64_t> own;
        while (static_cast<int64_t>(own.size()) < count) {
          const int64_t id = rng.below(draw++, 1000000);
          if (table.row(id) < 0 && std::find(own.begin(), own.end(), id) == own.end()) own.push_back(id);
        }
        table = table.added(own.data(), count, resources);
        ids.insert(ids.end(), own.begin(), own.end());
      }
    }
    expect_same(table, ids);
  }
}

}  // namespace
}  // namespace kith
