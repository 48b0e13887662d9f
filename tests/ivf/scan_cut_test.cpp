// How the search of lists on a GPU cuts its work: every pair of a query and a vector is looked at, and none twice.
#include "ivf/scan/scan_cut.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace kith {
namespace {

ScanCut cut_of(int64_t kept_rows, int sample_every) {
  ScanCut cut;
  cut.kept_rows = kept_rows;
  cut.sample_every = sample_every;
  cut.first_run_rows = 128;
  cut.later_run_rows = 256;
  cut.group_queries = 16;
  return cut;
}

// Looks by (row, pair), row by row; of all items, as kernels cut parts into them.
void count_looks(const ScanPart& part, int run_rows, int group_queries, uint32_t pairs, std::vector<int>& looks) {
  const uint32_t runs = part.runs(run_rows);
  const uint32_t groups = part.groups(group_queries);
  for (uint32_t run = 0; run < runs; ++run) {
    for (uint32_t group = 0; group < groups; ++group) {
      const uint32_t first_row = part.first_row + run * static_cast<uint32_t>(run_rows);
      const uint32_t first_pair = part.first_pair + group * static_cast<uint32_t>(group_queries);
      for (uint32_t row = first_row; row < std::min(first_row + static_cast<uint32_t>(run_rows), part.end_row); ++row) {
        for (uint32_t pair = first_pair;
             pair < std::min(first_pair + static_cast<uint32_t>(group_queries), part.end_pair); ++pair) {
          ++looks[row * pairs + pair];
        }
      }
    }
  }
}

TEST(ScanCut, EveryPairIsLookedAtOnce) {
  for (const uint32_t length : {0u, 1u, 63u, 64u, 65u, 400u, 1000u}) {
    for (const int64_t kept : {64, 448, 2048}) {
      for (const auto& [first, later] : std::vector<std::pair<uint32_t, uint32_t>>{{0, 5}, {3, 0}, {17, 40}}) {
        const uint32_t pairs = first + later;
        const ScanCut whole = cut_of(kept, 1);
        std::vector<int> looks(static_cast<size_t>(length) * pairs);
        count_looks(first_part(whole, length, first), whole.first_run_rows, whole.group_queries, pairs, looks);
        for (int part = 0; part < 2; ++part) {
          count_looks(later_part(whole, length, first, later, part), whole.later_run_rows, whole.group_queries, pairs,
                      looks);
        }
        for (const int look : looks) ASSERT_EQ(look, 1) << length << ", " << kept << ", " << first << ", " << later;

        const ScanCut sampled = cut_of(kept, 4);
        std::vector<int> again(static_cast<size_t>(length) * pairs);
        for (int part = 0; part < 2; ++part) {
          count_looks(later_part(sampled, length, first, later, part), sampled.later_run_rows, sampled.group_queries,
                      pairs, again);
        }
        for (const int look : again) ASSERT_EQ(look, 1) << "sampled: " << length << ", " << first << ", " << later;
      }
    }
  }
}

TEST(ScanCut, ASampleIsSpreadOverTheList) {
  for (const int every : {1, 2, 3, 4, 9}) {
    for (uint32_t length = 0; length < 1500; length += 1 + length % 7) {
      const ScanCut cut = cut_of(1 << 20, every);
      const uint32_t rows = cut.first_rows_of(length);
      EXPECT_LE(rows, length);
      EXPECT_EQ(rows == 0, length == 0);
      if (every == 1) {
        EXPECT_EQ(rows, length);
      }
      std::set<uint32_t> seen;
      for (uint32_t i = 0; i < rows; ++i) {
        const uint32_t row = sampled_row(i, cut.every_of(length));
        ASSERT_LT(row, length) << every << ", " << length;
        EXPECT_EQ(row / kSampleRows % static_cast<uint32_t>(every), 0u);
        seen.insert(row);
      }
      EXPECT_EQ(seen.size(), rows);
      // Nothing of a tile that is taken is left out.
      for (uint32_t row = 0; row < length; ++row) {
        EXPECT_EQ(seen.count(row), row / kSampleRows % static_cast<uint32_t>(every) == 0 ? 1u : 0u);
      }
    }
  }
}

TEST(ScanCut, KeptRowsEndASample) {
  const ScanCut cut = cut_of(128, 3);
  EXPECT_EQ(cut.first_rows_of(100000), 128u);
  EXPECT_EQ(cut.first_rows_of(70), 64u);
}

// A long list is sampled over its whole length, kept_rows at most, whether the second pass looks at all vectors or
// tiles lie between those that are taken.
TEST(ScanCut, ASampleOfALongListIsOfAllOfIt) {
  for (const int every : {1, 3}) {
    ScanCut cut = cut_of(1024, every);
    cut.rescans = true;
    for (const uint32_t length : {1u, 64u, 1000u, 1025u, 5000u, 77777u, 1000000u}) {
      const uint32_t rows = cut.first_rows_of(length);
      ASSERT_LE(rows, 1024u);
      const uint32_t last = sampled_row(rows - 1, cut.every_of(length));
      EXPECT_LT(last, length);
      EXPECT_GE(last, length / 2 - length / 8) << length;
      if (every == 1 && length <= 1024) {
        EXPECT_EQ(rows, length);
      }
    }
    EXPECT_EQ(cut.every_of(4'000'000'000u), kMostApart);
    EXPECT_EQ(cut.first_rows_of(4'000'000'000u), 1024u);
  }
}

TEST(ScanUnits, EveryUnitHasOnePlace) {
  for (const UnitOrder order : {UnitOrder::side_by_side, UnitOrder::paired, UnitOrder::apart}) {
    std::set<int> seen;
    for (int step = 0; step < kNarrowSteps; ++step) {
      for (int quarter = 0; quarter < 4; ++quarter) {
        const int unit = unit_of(order, step, quarter);
        EXPECT_EQ(step_of_unit(order, unit), step);
        EXPECT_EQ(quarter_of_unit(order, unit), quarter);
        seen.insert(unit);
      }
    }
    EXPECT_EQ(seen.size(), size_t{32});
    EXPECT_EQ(*seen.rbegin(), 31);
  }
}

}  // namespace
}  // namespace kith
