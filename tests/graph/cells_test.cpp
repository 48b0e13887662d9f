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

reference::Lists built(const MatrixView& x, const CellsParams& params, int64_t length, const Resources& resources) {
  const PairRows rows(x, key_kind(params.metric), resources);
  WorkingLists lists(x.rows(), length, resources);
  GraphListsCpu on_cpu(rows, params.metric, nullptr, lists, resources);
  run_cells(*make_cell_steps(on_cpu, params), on_cpu, params, resources);
  return reference::lists_of(lists);
}

TEST(Cells, HoldTheFirstOfAllThatWasComparedByEitherRow) {
  for (const Shape shape : reference::kAllShapes) {
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::cosine, Metric::inner_product}) {
      SCOPED_TRACE(::testing::Message() << shape << " " << name_of(metric));
      const auto x = make_floats(shape, 300, 19, 3);
      CellsParams params{.metric = metric, .k = 5, .cells = 12, .probes = 5, .recall = {}, .seed = 7};
      const CellPartition cells(x.view(), params, nullptr, on_cpu());
      EXPECT_EQ(reference::difference(built(x.view(), params, 5, on_cpu()),
                                      reference::cells_graph(x, metric, cells, params.probes, 5)),
                "");
    }
  }
}

TEST(Cells, CompareEveryDtypeAlike) {
  const auto bytes = reference::make_bytes(400, 33, 1);
  const auto floats = reference::widened(bytes);
  const CellsParams params{.metric = Metric::l2, .k = 6, .cells = 8, .probes = 3, .recall = {}, .seed = 1};
  EXPECT_EQ(reference::difference(built(bytes.view(), params, 6, on_cpu()), built(floats.view(), params, 6, on_cpu())),
            "");
  const auto halves = reference::stored_as<Half>(make_floats(Shape::gaussian, 300, 20, 2));
  EXPECT_EQ(reference::difference(built(halves.view(), params, 6, on_cpu()),
                                  built(reference::widened(halves).view(), params, 6, on_cpu())),
            "");
}

TEST(Cells, DoNotDependOnThreads) {
  const auto x = make_floats(Shape::near_duplicates, reference::fewer_if_sanitized(3000, 1100), 24, 5);
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
    const CellsParams params{.metric = metric, .k = 10, .cells = 40, .probes = 9, .recall = {}, .seed = 1};
    const reference::Lists one = built(x.view(), params, 10, on_cpu(1));
    EXPECT_EQ(reference::difference(one, built(x.view(), params, 10, on_cpu(3))), "");
    EXPECT_EQ(reference::difference(one, built(x.view(), params, 10, on_cpu(8))), "");
  }
}

// Panels of every width, full blocks of queries and the rest of one.
TEST(Cells, DoNotDependOnTheInstructionSet) {
  const auto bytes = reference::make_bytes(1500, 128, 1);
  const auto floats = reference::without_sign(make_floats(Shape::gaussian, 1500, 128, 2));
  const auto odd = reference::without_sign(make_floats(Shape::near_duplicates, 1300, 37, 2));
  for (const Metric metric : {Metric::l2, Metric::chi_square}) {
    const CellsParams params{.metric = metric, .k = 15, .cells = 5, .probes = 3, .recall = {}, .seed = 1};
    for (const MatrixView& x : {bytes.view(), floats.view(), odd.view()}) {
      std::optional<reference::Lists> first;
      for (const std::string& target : cpu_targets()) {
        const ForcedTarget forced(target);
        const reference::Lists lists = built(x, params, 15, on_cpu(2));
        if (!first) first = lists;
        EXPECT_EQ(reference::difference(lists, *first), "") << target << " " << name_of(metric) << " " << x.cols();
      }
    }
  }
}

TEST(Cells, OneHugeCellAndEmptyOnes) {
  auto x = make_floats(Shape::gaussian, 2500, 8, 5);
  for (int64_t i = 0; i < 2400; ++i) std::fill_n(x.row(i), 8, 1.0f);
  const CellsParams params{.metric = Metric::l2, .k = 4, .cells = 20, .probes = 2, .recall = {}, .seed = 1};
  const CellPartition cells(x.view(), params, nullptr, on_cpu());
  int64_t largest = 0;
  for (int64_t cell = 0; cell < cells.cells(); ++cell) largest = std::max(largest, cells.size(cell));
  EXPECT_GE(largest, 2000);
  EXPECT_EQ(reference::difference(built(x.view(), params, 4, on_cpu()),
                                  reference::cells_graph(x, params.metric, cells, params.probes, 4)),
            "");
}

TEST(Cells, PartitionHoldsEveryRowOnceAndRanksItsOwnCellFirst) {
  const auto x = make_floats(Shape::gaussian, 700, 6, 5);
  for (const Metric metric : {Metric::l2, Metric::inner_product}) {
    const CellPartition cells(x.view(), {.metric = metric, .cells = 30, .probes = 11, .seed = 3}, nullptr, on_cpu());
    std::set<uint32_t> seen;
    for (int64_t cell = 0; cell < cells.cells(); ++cell) {
      for (int64_t i = 0; i < cells.size(cell); ++i) {
        const uint32_t row = cells.members(cell)[i];
        EXPECT_TRUE(seen.insert(row).second);
        const std::set<uint32_t> ranks(cells.ranks(row, 0), cells.ranks(row, 0) + 11);
        EXPECT_EQ(cells.ranks(row, 0)[0], cell);
        EXPECT_EQ(ranks.size(), 11u);
        EXPECT_LT(*ranks.rbegin(), 30u);
      }
    }
    EXPECT_EQ(seen.size(), 700u);
  }
}

// Wherever ranking begins, the same cells come: by (distance, cell), the own cell first.
TEST(Cells, AreRankedByDistanceWhereverRankingBegins) {
  for (const Shape shape : reference::kAllShapes) {  // with duplicates centres tie
    for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
      SCOPED_TRACE(::testing::Message() << shape << " " << name_of(metric));
      const auto x = make_floats(shape, 400, 6, 5);
      const CellsParams params{.metric = metric, .cells = 90, .probes = 90, .seed = 3};
      const CellPartition whole(x.view(), params, nullptr, on_cpu());
      CellPartition parts(x.view(), params, nullptr, on_cpu());
      for (const int64_t first : {1, 37, 0, 80}) {
        parts.rank({first, 10});
        for (int64_t row = 0; row < 400; ++row) {
          ASSERT_TRUE(std::equal(parts.ranks(row, first), parts.ranks(row, first) + 10, whole.ranks(row, first)))
              << row;
        }
      }
    }
  }
}

TEST(Cells, RankSomeProbesAtATime) {
  const auto x = make_floats(Shape::gaussian, 2000, 6, 5);
  CellPartition cells(x.view(), {.cells = 300, .probes = 300, .seed = 3}, nullptr, on_cpu());
  EXPECT_EQ(cells.ranked().end(), 128);
  EXPECT_TRUE(cells.ranked().holds(127));
  EXPECT_FALSE(cells.ranked().holds(128));
  cells.rank(cells.window_from(128, 130));
  EXPECT_EQ(cells.ranked().end(), 256);
  cells.rank(cells.window_from(256, 300));
  EXPECT_EQ(cells.ranked().end(), 300);
  EXPECT_LT(cells.ranks(7, 299)[0], 300u);
  EXPECT_EQ(last_rank_window(300, 2000).first, 172);
  EXPECT_EQ(last_rank_window(3, 2000).count, 3);
}

TEST(Cells, PairsOfMoreProbesThanAreRankedAreEstimated) {
  EXPECT_EQ(pairs_by_probes(1234, 7, 7, 100), 1234);
  EXPECT_EQ(pairs_by_probes(1000, 10, 25, 100), 2500);
  EXPECT_EQ(pairs_by_probes(9000, 10, 25, 100), 10000);  // all there are
}

// Enough cells that only those near the own cell's centre are ranked.
TEST(SlowCells, RankAmongTheNearestOfVeryMany) {
  const auto x = make_floats(Shape::gaussian, 20000, 3, 5);
  const CellPartition cells(x.view(), {.cells = kMostCellsRanked + 10, .probes = 4, .seed = 3}, nullptr, on_cpu());
  for (int64_t row = 0; row < 20000; row += 37) {
    const std::set<uint32_t> ranks(cells.ranks(row, 0), cells.ranks(row, 0) + 4);
    EXPECT_EQ(ranks.size(), 4u);
  }
}

// Probes end where the recall is reached, and waves begin anywhere after that.
TEST(Cells, NoWaveIsWiderThanTheWidest) {
  for (int64_t probes = 1; probes < 200; ++probes) {
    int64_t widest = 0;
    for (int64_t first = 0; first < probes; ++first) {
      for (int64_t end = first + 1; end <= probes; ++end) widest = std::max(widest, wave_end(first, end) - first);
    }
    ASSERT_EQ(widest_wave(probes), widest) << probes;
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
  EXPECT_EQ(wave_end(6, 11), 11);  // to the end, if that is near
  EXPECT_EQ(wave_end(6, 12), 10);
}

}  // namespace
}  // namespace kith
