#include "graph/build/cells/probe_forecast.hpp"

#include <kith/knn.hpp>

#include "exact/exact_check.hpp"
#include "graph/build/cells/cell_partition.hpp"
#include "graph/build/cells/cell_ranks_cpu.hpp"
#include "graph/build/cells/cells.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"
#include "reference/data_kinds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

constexpr int64_t kLength = 8;

// The recall of control rows after so many probes.
double recall_after(int64_t probes, const MatrixView& x, CellsParams params, const ControlRows& control) {
  params.probes = probes;
  params.recall = {};
  const PairRows rows(x, key_kind(params.metric), on_cpu());
  WorkingLists lists(x.rows(), kLength, on_cpu());
  GraphListsCpu graph(rows, params.metric, nullptr, lists, on_cpu());
  run_cells(*make_cell_steps(graph, params), graph, params, on_cpu());
  return control.measure(lists).recall;
}

TEST(ProbeForecast, IsTheFewestProbesThatReachTheRecall) {
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
    for (const Shape shape : {Shape::gaussian, Shape::far_mean, Shape::mixed_norms}) {
      const auto x = make_floats(shape, 1500, 7, 3);
      const ControlRows control(x.view(), metric, kLength, 5, on_cpu());
      for (const double recall : {0.5, 0.9, 0.99, 1.0}) {
        SCOPED_TRACE(::testing::Message() << name_of(metric) << " " << shape << " " << recall);
        const CellsParams params{
            .metric = metric, .k = kLength, .cells = 30, .probes = 30, .recall = recall, .seed = 3};
        const int64_t needed = CellPartition(x.view(), params, &control, on_cpu()).forecast().needed;
        EXPECT_GE(recall_after(needed, x.view(), params, control), recall);
        if (needed > 1) {
          EXPECT_LT(recall_after(needed - 1, x.view(), params, control), recall);
        }
      }
    }
  }
}

// Rows that tie with the last neighbour count, wherever they are: of all rows where these are few.
TEST(ProbeForecast, CountsTies) {
  for (const char* const name : {"lattice", "distinct_1000", "half_equal", "sparse"}) {
    SCOPED_TRACE(name);
    const auto x = reference::make_kind(name, 3000, 3);
    const ControlRows control(x.view(), Metric::l2, kLength, 5, on_cpu());
    const CellsParams params{.metric = Metric::l2, .k = kLength, .cells = 40, .probes = 40, .recall = 0.9, .seed = 3};
    const ProbeForecast forecast = CellPartition(x.view(), params, &control, on_cpu()).forecast();
    const double reached = recall_after(forecast.needed, x.view(), params, control);
    EXPECT_GE(reached, 0.88);
    if (forecast.needed > 1) {
      EXPECT_LT(recall_after(forecast.needed - 1, x.view(), params, control), 0.92);
    }
    EXPECT_LE(forecast.for_descent, forecast.needed);
  }
}

TEST(ProbeForecast, TellsWhereVeryManyRowsAreAsNear) {
  const CellsParams params{.metric = Metric::l2, .k = kLength, .cells = 12, .probes = 12, .recall = 0.9, .seed = 3};
  const auto crowded = [&](const char* name) {
    const auto x = reference::make_kind(name, 9000, 3);
    const ControlRows control(x.view(), Metric::l2, kLength, 5, on_cpu());
    return CellPartition(x.view(), params, &control, on_cpu()).forecast().crowded;
  };
  EXPECT_TRUE(crowded("half_equal"));
  EXPECT_FALSE(crowded("distinct_1000"));
  EXPECT_FALSE(crowded("normal"));
}

// As the search of every vector among the centres orders them.
TEST(ProbeForecast, FindsTheirPlacesWithEveryInstructionSet) {
  for (const Shape shape : reference::kAllShapes) {
    const auto vectors = make_floats(shape, 70, 19, 3);
    auto centres = make_floats(shape, 200, 19, 4);
    for (int64_t i = 0; i < 200; i += 7) std::copy_n(centres.row(3), 19, centres.row(i));  // some tie
    const Neighbors order = knn(vectors.view(), centres.view(), {.k = 200, .check_finite = false}, on_cpu());
    std::vector<PlaceQuestion> questions;
    std::vector<uint32_t> own;
    std::vector<uint32_t> expected;
    for (uint32_t row = 0; row < 70; ++row) {
      own.push_back(static_cast<uint32_t>(order.ids(row)[row % 5]));
      for (uint32_t cell = row % 3; cell < 200; cell += 11) {
        if (cell == own.back()) continue;
        questions.push_back({row, cell});
        uint32_t before = 0;
        for (int64_t j = 0; order.ids(row)[j] != cell; ++j) before += order.ids(row)[j] != own.back() ? 1 : 0;
        expected.push_back(before);
      }
    }
    for (const std::string& target : targets_for_next_case()) {
      SCOPED_TRACE(::testing::Message() << shape << " " << target);
      const ForcedTarget forced(target);
      CellRanks ranks(centres.view(), 1, on_cpu(2));
      std::vector<uint32_t> found(questions.size());
      ranks.count_nearer(vectors.view(), 0, own.data(), questions, found.data());
      EXPECT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace kith
