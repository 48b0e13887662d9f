// Graphs by a metric of the user's.
#include <kith/custom_metric.hpp>

#include <kith/error.hpp>
#include <kith/knn_graph.hpp>

#include "exact/exact_check.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using ::testing::HasSubstr;

struct Canberra {
  static constexpr bool symmetric = true;
  float init() const { return 0; }
  float step(float sum, float q, float x) const {
    const float size = std::abs(q) + std::abs(x);
    return size == 0 ? sum : sum + std::abs(q - x) / size;
  }
  float finish(float sum) const { return sum; }
};

// It says that it is symmetric.
struct OneWay {
  static constexpr bool symmetric = true;
  float init() const { return 0; }
  float step(float sum, float q, float x) const { return sum + std::max(q - x, 0.0f); }
  float finish(float sum) const { return sum; }
};

std::vector<int64_t> ids_of(const CustomGraph& graph) {
  const Neighbors& found = graph.neighbors;
  return {found.ids(), found.ids() + found.queries() * found.k()};
}

// The neighbours of every row by exact search, without the row itself.
std::vector<int64_t> true_ids(const MatrixView& x, int64_t k) {
  const Neighbors found = knn_by(Canberra{}, x, x, {.k = k + 1}, on_cpu());
  std::vector<int64_t> ids;
  for (int64_t row = 0; row < x.rows(); ++row) {
    int64_t place = 0;
    for (int64_t j = 0; j <= k && place < k; ++j) {
      if (found.ids(row)[j] == row) continue;
      ids.push_back(found.ids(row)[j]);
      ++place;
    }
  }
  return ids;
}

TEST(CustomGraph, ReachesItsRecall) {
  const auto x = make_floats(Shape::gaussian, 2500, 8, 3);
  for (const GraphUpdate update : {GraphUpdate::selective, GraphUpdate::all}) {
    const CustomGraph graph = knn_graph_by(Canberra{}, x.view(), {.k = 10, .recall = 0.97, .update = update}, on_cpu());
    const std::vector<int64_t> ids = ids_of(graph);
    const std::vector<int64_t> truth = true_ids(x.view(), 10);
    int64_t found = 0;
    for (size_t row = 0; row < 2500; ++row) {
      const auto first = truth.begin() + static_cast<int64_t>(row) * 10;
      for (size_t j = 0; j < 10; ++j) {
        found += std::find(first, first + 10, ids[row * 10 + j]) != first + 10 ? 1 : 0;
        EXPECT_NE(ids[row * 10 + j], static_cast<int64_t>(row));
      }
    }
    EXPECT_GE(static_cast<double>(found) / 25000, 0.96);
    EXPECT_TRUE(graph.report.reached);
    EXPECT_EQ(graph.report.method, "nn_descent");
    EXPECT_FALSE(graph.report.rounds.empty());
    EXPECT_GT(graph.report.peak_host_bytes, 2500 * 64 * 8);
  }
}

TEST(CustomGraph, DistancesAreTheMetricsInAnyThreads) {
  const auto x = make_floats(Shape::gaussian, 700, 6, 3);
  const CustomGraph one = knn_graph_by(Canberra{}, x.view(), {.k = 7, .seed = 5}, on_cpu(1));
  const CustomGraph many = knn_graph_by(Canberra{}, x.view(), {.k = 7, .seed = 5}, on_cpu(5));
  EXPECT_EQ(ids_of(one), ids_of(many));
  const Neighbors truth = knn_by(Canberra{}, x.view(), x.view(), {.k = 700}, on_cpu());
  for (int64_t row = 0; row < 700; ++row) {
    for (int64_t j = 0; j < 7; ++j) {
      const int64_t* const ids = truth.ids(row);
      const auto place = std::find(ids, ids + 700, one.neighbors.ids(row)[j]) - ids;
      ASSERT_EQ(one.neighbors.distances(row)[j], truth.distances(row)[place]);
    }
  }
}

TEST(CustomGraph, IsExactWhereAllOthersFitAList) {
  for (const int64_t rows : {1, 2, 5, 60}) {
    const auto x = make_floats(Shape::gaussian, rows, 4, 3);
    const CustomGraph graph = knn_graph_by(Canberra{}, x.view(), {.k = 3}, on_cpu());
    EXPECT_EQ(ids_of(graph), true_ids(x.view(), 3));
    EXPECT_EQ(graph.report.recall->recall, 1);
  }
  EXPECT_EQ(knn_graph_by(Canberra{}, MatrixView(static_cast<const float*>(nullptr), 0, 4), {.k = 3}, on_cpu())
                .neighbors.queries(),
            0);
}

TEST(CustomGraph, RefusesWhatItCannotDo) {
  const auto x = make_floats(Shape::gaussian, 300, 4, 3);
  const auto text = [&](const auto& metric, const CustomGraphParams& params, const MatrixView& rows) -> std::string {
    try {
      knn_graph_by(metric, rows, params, on_cpu());
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(text(OneWay{}, {}, x.view()), HasSubstr("symmetric"));
  EXPECT_THAT(text(Canberra{}, {.recall = 1}, x.view()), HasSubstr("recall"));
  EXPECT_THAT(text(Canberra{}, {.samples = 0}, x.view()), HasSubstr("samples"));
  auto bad = x;
  bad.row(217)[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(text(Canberra{}, {}, bad.view()), HasSubstr("x row 217"));
  ResourceOptions options;
  options.host_memory_limit = 1000;
  EXPECT_THROW(knn_graph_by(Canberra{}, x.view(), {}, Resources(options)), OutOfMemory);
}

}  // namespace
}  // namespace kith
