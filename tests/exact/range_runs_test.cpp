#include "exact/range_runs.hpp"
#include "exact/exact_check.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace kith {
namespace {

struct Found {
  uint32_t query;
  std::vector<uint64_t> neighbors;
};

void add(RangeRuns& runs, const std::vector<Found>& found) {
  int64_t rows = 0;
  for (const Found& run : found) rows += static_cast<int64_t>(run.neighbors.size());
  RangeRuns::Part* const part = runs.add(static_cast<int64_t>(found.size()), rows);
  if (part == nullptr) return;
  auto* run = part->runs.data();
  auto* neighbor = part->neighbors.data();
  for (const Found& one : found) {
    *run++ = {one.query, static_cast<uint32_t>(one.neighbors.size())};
    neighbor = std::copy(one.neighbors.begin(), one.neighbors.end(), neighbor);
  }
}

TEST(RangeRuns, PutsEveryQuerysRunsTogetherAndSortsThem) {
  const Resources resources = on_cpu();
  RangeRuns runs(resources);
  add(runs, {{2, {5, 9}}, {0, {7}}});
  add(runs, {});
  add(runs, {{2, {6, 1}}, {3, {4}}});
  EXPECT_EQ(runs.counted(), 6);
  EXPECT_FALSE(runs.overflowed());
  ProgressMeter meter("test", 1, resources);
  const CollectedHits hits = runs.collect(5, meter);
  EXPECT_EQ(std::vector<int64_t>(hits.offsets(), hits.offsets() + 6), (std::vector<int64_t>{0, 1, 1, 5, 6, 6}));
  EXPECT_EQ(std::vector<uint64_t>(hits.neighbors(), hits.neighbors() + 6), (std::vector<uint64_t>{7, 1, 5, 6, 9, 4}));
  EXPECT_EQ(runs.counted(), 0);
}

TEST(RangeRuns, CountsWhatHasNoRoom) {
  const Resources resources = on_cpu(1, 200);
  RangeRuns runs(resources);
  add(runs, {{0, std::vector<uint64_t>(10, 1)}});
  EXPECT_FALSE(runs.overflowed());
  add(runs, {{1, std::vector<uint64_t>(100, 1)}});
  EXPECT_TRUE(runs.overflowed());
  add(runs, {{2, {1}}});
  EXPECT_EQ(runs.counted(), 111);
  runs.clear();
  EXPECT_EQ(runs.counted(), 0);
  EXPECT_FALSE(runs.overflowed());
  add(runs, {{1, std::vector<uint64_t>(20, 1)}});
  EXPECT_FALSE(runs.overflowed());
}

}  // namespace
}  // namespace kith
