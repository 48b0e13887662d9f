#include "graph/build/cells/cells.hpp"

#include "exact/exact_check.hpp"
#include "graph/build/cells/cell_partition.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"
#include "reference/graph.hpp"
#include "reference/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

reference::Lists built(const MatrixView& x, const CellsWish& wish, int64_t length, const Resources& resources) {
  const PairRows rows(x, key_kind(wish.metric), resources);
  WorkingLists lists(x.rows(), length, resources);
  GraphListsCpu on_cpu(rows, wish.metric, nullptr, lists, resources);
  build_by_cells(on_cpu, wish, resources);
  return reference::lists_of(lists);
}

TEST(Cells, HoldTheFirstOfAllThatWasComparedByEitherRow) {
  for (const Shape shape : reference::kAllShapes) {
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::cosine, Metric::inner_product}) {
      SCOPED_TRACE(::testing::Message() << shape << " " << name_of(metric));
      const auto x = make_floats(shape, 300, 19, 3);
      CellsWish wish{.metric = metric, .k = 5, .cells = 12, .probes = 5, .recall = {}, .seed = 7};
      const CellPartition cells(x.view(), wish, on_cpu());
      EXPECT_EQ(reference::difference(built(x.view(), wish, 5, on_cpu()), reference::cells_graph(x, metric, cells, wish.probes, 5)), "");
    }
  }
}

TEST(Cells, CompareEveryDtypeAlike) {
  const auto bytes = reference::make_bytes(400, 33, 1);
  const auto floats = reference::widened(bytes);
  const CellsWish wish{.metric = Metric::l2, .k = 6, .cells = 8, .probes = 3, .recall = {}, .seed = 1};
  EXPECT_EQ(reference::difference(built(bytes.view(), wish, 6, on_cpu()), built(floats.view(), wish, 6, on_cpu())), "");
  const auto halves = reference::stored_as<Half>(make_floats(Shape::gaussian, 300, 20, 2));
  EXPECT_EQ(reference::difference(built(halves.view(), wish, 6, on_cpu()), built(reference::widened(halves).view(), wish, 6, on_cpu())), "");
}

TEST(Cells, DoNotDependOnThreads) {
  const auto x = make_floats(Shape::near_duplicates, reference::fewer_if_sanitized(3000, 1100), 24, 5);
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
    const CellsWish wish{.metric = metric, .k = 10, .cells = 40, .probes = 9, .recall = {}, .seed = 1};
    const reference::Lists one = built(x.view(), wish, 10, on_cpu(1));
    EXPECT_EQ(reference::difference(one, built(x.view(), wish, 10, on_cpu(3))), "");
    EXPECT_EQ(reference::difference(one, built(x.view(), wish, 10, on_cpu(8))), "");
  }
}

// Panels of every width, full blocks of queries and the rest of one.
TEST(Cells, DoNotDependOnTheInstructionSet) {
  const auto bytes = reference::make_bytes(1500, 128, 1);
  const auto floats = reference::without_sign(make_floats(Shape::gaussian, 1500, 128, 2));
  const auto odd = reference::without_sign(make_floats(Shape::near_duplicates, 1300, 37, 2));
  for (const Metric metric : {Metric::l2, Metric::chi_square}) {
    const CellsWish wish{.metric = metric, .k = 15, .cells = 5, .probes = 3, .recall = {}, .seed = 1};
    for (const MatrixView& x : {bytes.view(), floats.view(), odd.view()}) {
      std::optional<reference::Lists> first;
      for (const std::string& target : cpu_targets()) {
        const ForcedTarget forced(target);
        const reference::Lists lists = built(x, wish, 15, on_cpu(2));
        if (!first) first = lists;
        EXPECT_EQ(reference::difference(lists, *first), "") << target << " " << name_of(metric) << " " << x.cols();
      }
    }
  }
}

TEST(Cells, OneHugeCellAndEmptyOnes) {
  auto x = make_floats(Shape::gaussian, 2500, 8, 5);
  for (int64_t i = 0; i < 2400; ++i) std::fill_n(x.row(i), 8, 1.0f);
  const CellsWish wish{.metric = Metric::l2, .k = 4, .cells = 20, .probes = 2, .recall = {}, .seed = 1};
  const CellPartition cells(x.view(), wish, on_cpu());
  int64_t largest = 0;
  for (int64_t cell = 0; cell < cells.cells(); ++cell) largest = std::max(largest, cells.size(cell));
  EXPECT_GE(largest, 2000);
  EXPECT_EQ(reference::difference(built(x.view(), wish, 4, on_cpu()), reference::cells_graph(x, wish.metric, cells, wish.probes, 4)), "");
}

TEST(Cells, PartitionHoldsEveryRowOnceAndRanksItsOwnCellFirst) {
  const auto x = make_floats(Shape::gaussian, 700, 6, 5);
  for (const Metric metric : {Metric::l2, Metric::inner_product}) {
    const CellPartition cells(x.view(), {.metric = metric, .cells = 30, .probes = 11, .seed = 3}, on_cpu());
    std::set<uint32_t> seen;
    for (int64_t cell = 0; cell < cells.cells(); ++cell) {
      for (int64_t i = 0; i < cells.size(cell); ++i) {
        const uint32_t row = cells.members(cell)[i];
        EXPECT_TRUE(seen.insert(row).second);
        const std::set<uint32_t> ranks(cells.ranks(row), cells.ranks(row) + 11);
        EXPECT_EQ(cells.ranks(row)[0], cell);
        EXPECT_EQ(ranks.size(), 11u);
        EXPECT_LT(*ranks.rbegin(), 30u);
      }
    }
    EXPECT_EQ(seen.size(), 700u);
  }
}

// Whoever asks for few first, and more later, gets the same: by (distance, cell), the own cell first.
TEST(Cells, AreRankedByDistanceWhateverWasAskedForFirst) {
  for (const Shape shape : reference::kAllShapes) {  // with duplicates centres tie
    for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
      SCOPED_TRACE(::testing::Message() << shape << " " << name_of(metric));
      const auto x = make_floats(shape, 400, 6, 5);
      const CellPartition whole(x.view(), {.metric = metric, .cells = 90, .probes = 90, .seed = 3}, on_cpu());
      CellPartition parts(x.view(), {.metric = metric, .cells = 90, .probes = 90, .likely = 4, .seed = 3}, on_cpu());
      EXPECT_GE(parts.ranked(), 4);
      EXPECT_LT(parts.ranked(), 20);
      for (const int64_t count : {1, 37, 80}) {
        parts.rank(count);
        ASSERT_GE(parts.ranked(), count);
        for (int64_t row = 0; row < 400; ++row) {
          ASSERT_TRUE(std::equal(parts.ranks(row), parts.ranks(row) + parts.ranked(), whole.ranks(row))) << row;
        }
      }
    }
  }
}

// So many cells that only those near the own cell's centre are ranked.
TEST(SlowCells, RankAmongTheNearestOfVeryMany) {
  const auto x = make_floats(Shape::gaussian, 20000, 3, 5);
  const CellPartition cells(x.view(), {.cells = kMostCellsRanked + 10, .probes = 4, .seed = 3}, on_cpu());
  for (int64_t row = 0; row < 20000; row += 37) {
    const std::set<uint32_t> ranks(cells.ranks(row), cells.ranks(row) + 4);
    EXPECT_EQ(ranks.size(), 4u);
  }
}

TEST(Cells, ForeseeHowManyProbesAreNeeded) {
  EXPECT_NEAR(probes_needed(4, 0.2, 9, 0.1, 0.05), 16, 1e-9);  // halved with every root
  EXPECT_NEAR(probes_needed(4, 0.2, 9, 0.1, 0.0125), 36, 1e-9);
  EXPECT_EQ(probes_needed(4, 0.4, 8, 0.005, 0.01), 8);
  EXPECT_TRUE(std::isinf(probes_needed(4, 0.4, 8, 0.4, 0.01)));
  // A million rows of a mixture, which then needed 90.
  const double needed = probes_needed(11, 1 - 0.8294, 23, 1 - 0.9074, 0.01);
  EXPECT_GT(needed, 60);
  EXPECT_LT(needed, 130);
}

// Beside logarithms of the library: what they say in their first digits is the same.
TEST(Cells, ForeseeByLogarithmsOfTheirOwn) {
  for (double missing = 0.39; missing > 0.011; missing *= 0.97) {
    const double slope = std::log(0.4 / missing) / (std::sqrt(9.0) - std::sqrt(4.0));
    const double root = 3 + std::log(missing / 0.01) / slope;
    EXPECT_NEAR(probes_needed(4, 0.4, 9, missing, 0.01) / (root * root), 1, 1e-6) << missing;
  }
}

// A wave can begin wherever one before it has ended, which may be anywhere once more are foreseen.
TEST(Cells, NoWaveIsWiderThanTheWidest) {
  for (int64_t probes = 1; probes < 200; ++probes) {
    std::vector<bool> begins(static_cast<size_t>(probes) + 1, false);
    begins[0] = true;
    int64_t widest = 0;
    for (int64_t first = 0; first < probes; ++first) {
      if (!begins[static_cast<size_t>(first)]) continue;
      for (int64_t expected = 0; expected <= (first < kFewestConcluded ? 0 : probes); ++expected) {
        const int64_t end = wave_end(first, probes, expected);
        begins[static_cast<size_t>(end)] = true;
        widest = std::max(widest, end - first);
      }
    }
    ASSERT_GE(widest_wave(probes, true), widest) << probes;
    ASSERT_LE(widest_wave(probes, true), widest + 2) << probes;
    int64_t plain = 0;
    for (int64_t first = 0; first < probes; first = wave_end(first, probes)) {
      plain = std::max(plain, wave_end(first, probes) - first);
    }
    ASSERT_EQ(widest_wave(probes, false), plain) << probes;
  }
}

TEST(Cells, WavesCoverEveryProbeOnce) {
  for (const int64_t probes : {1, 2, 5, 17, 100}) {
    int64_t at = 0;
    while (at < probes) {
      const int64_t end = wave_end(at, probes);
      ASSERT_GT(end, at);
      ASSERT_LE(end, probes);
      at = end;
    }
    EXPECT_EQ(at, probes);
  }
  EXPECT_EQ(wave_end(0, 50), 1);  // the own cell alone
  // To where it is expected to be done, if that is near.
  for (int64_t first = 1; first < 300; ++first) {
    for (int64_t expected = 0; expected < 600; ++expected) {
      const int64_t end = wave_end(first, 500, expected);
      ASSERT_GT(end, first);
      ASSERT_LE(end, std::min<int64_t>(500, longest_wave_end(wave_end(first, 500))));
      if (expected <= first || longest_wave_end(wave_end(first, 500)) < expected) {
        ASSERT_EQ(end, wave_end(first, 500));
      } else if (end < expected) {
        ASSERT_GE(end, std::min<int64_t>(500, wave_end(first, 500)));
      } else {
        ASSERT_LE(end, std::max(wave_end(first, 500), enough_probes(expected)));
      }
    }
  }
}

}  // namespace
}  // namespace kith
