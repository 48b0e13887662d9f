// Index("Graph32") built from a graph of its vectors: what it finds, and which graphs are refused.
#include <kith/error.hpp>
#include <kith/index.hpp>
#include <kith/knn_graph.hpp>

#include "index/graph_check.hpp"
#include "index/index_check.hpp"
#include "reference/data.hpp"
#include "reference/data_kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {
namespace {

using ::testing::HasSubstr;

KnnGraph neighbors_of(const MatrixView& rows, int64_t k, Metric metric = Metric::l2) {
  return knn_graph(rows, {.k = k, .metric = metric, .recall = 0.95}, on_cpu());
}

Index built_from(const MatrixView& rows, const KnnGraph& start, const char* factory = "Graph32",
                 Metric metric = Metric::l2, int threads = 2) {
  Index index(factory, {.metric = metric});
  if (!index.trained()) index.train(rows, on_cpu());
  index.add(rows, {}, start, on_cpu(kNoLimit, threads));
  return index;
}

TEST(GraphStart, FindsWhatABuildFinds) {
  auto data = reference::make_kind("low_rank_24", walked_rows() + 200, 1);
  for (int64_t i = 50; i < 120; ++i) std::copy_n(data.row(50), data.cols, data.row(i));  // at one place
  const MatrixView rows = data.view().slice(0, walked_rows());
  const MatrixView queries = data.view().slice(walked_rows(), 200);
  const SearchParams params{.k = 10, .beam = 48};
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::l1}) {
    SCOPED_TRACE(name_of(metric));
    const Index index = built_from(rows, neighbors_of(rows, 96, metric), "Graph32", metric);
    const Index fresh = graph_of(rows, "Graph32", metric);
    const Neighbors found = index.search(queries, params, on_cpu());
    const double built = recall_of(fresh, fresh.search(queries, params, on_cpu()), queries, rows);
    EXPECT_GE(recall_of(index, found, queries, rows), built - 0.01);
    EXPECT_LE(index.info().lost, 1);
    expect_same(
        found,
        built_from(rows, neighbors_of(rows, 96, metric), "Graph32", metric, 7).search(queries, params, on_cpu()));
  }
}

TEST(GraphStart, FewNeighborsAreSaidAndOtherFormsGoIn) {
  const auto data = reference::make_kind("low_rank_24", walked_rows(), 1);
  const MatrixView rows = data.view();
  const KnnGraph start = neighbors_of(rows, 12);
  for (const char* factory : {"Graph16", "Graph16,SQ8", "PCA16,Graph16", "PCA16,Graph16,RFlat"}) {
    SCOPED_TRACE(factory);
    const Index index = built_from(rows, start, factory);
    EXPECT_EQ(index.size(), rows.rows());
    EXPECT_FALSE(index.info().recalls.empty());
    const Neighbors own = index.search(rows.slice(0, 100), {.k = 1, .beam = 64}, on_cpu());
    int64_t found = 0;
    for (int64_t i = 0; i < 100; ++i) found += own.ids(i)[0] == i ? 1 : 0;
    EXPECT_GE(found, 97);
  }
  std::string said;
  Index index("Graph16", {.metric = Metric::sqeuclidean});
  index.add(rows, {}, start, on_cpu().with_log([&](LogLevel, std::string_view line) { said += line; }));
  EXPECT_THAT(said, HasSubstr("start has 12 neighbours"));
  // Few rows have no graph, and what comes later none from start.
  Index few("Graph16");
  few.add(rows.slice(0, 100), {}, neighbors_of(rows.slice(0, 100), 5), on_cpu());
  EXPECT_EQ(few.size(), 100);
}

TEST(GraphStart, GraphsOfOtherRowsAreRefused) {
  const auto data = reference::make_kind("low_rank_24", 6000, 1);
  const auto others = reference::make_kind("low_rank_24", 5000, 2);
  const MatrixView rows = data.view().slice(0, 5000);
  const auto refused = [&](const KnnGraph& start, Metric metric = Metric::l2) -> std::string {
    try {
      (void)built_from(rows, start, "Graph16", metric);
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_THAT(refused(neighbors_of(data.view(), 8)), HasSubstr("6000 rows, and 5000 are added"));
  EXPECT_THAT(refused(neighbors_of(others.view(), 8)), HasSubstr("a graph of other rows"));
  EXPECT_THAT(refused(neighbors_of(data.view().slice(1000, 5000), 8)), HasSubstr("a graph of other rows"));
  EXPECT_THAT(refused(neighbors_of(rows, 8, Metric::cosine)), HasSubstr("a graph by cosine"));
  EXPECT_THAT(refused(neighbors_of(rows, 8, Metric::inner_product), Metric::inner_product), HasSubstr("inner_product"));
  EXPECT_EQ(refused(neighbors_of(rows, 8)), "taken");
  const KnnGraph start = neighbors_of(rows, 8);
  Index flat("Flat");
  EXPECT_THROW(flat.add(rows, {}, start, on_cpu()), Unsupported);
  Index index = built_from(rows, start, "Graph16");
  EXPECT_THROW(index.add(rows, {}, start, on_cpu()), InvalidState);
  EXPECT_EQ(index.size(), 5000);
}

// A graph that joins each row with any others has true distances, and no walk finds its way over it.
TEST(GraphStart, RowsThatNoWalkFindsAreSaid) {
  constexpr int64_t kOthers = 6;
  const auto data = reference::make_floats(reference::Shape::gaussian, walked_rows(), 16, 1);
  Neighbors any(data.rows, kOthers, on_cpu());
  for (int64_t i = 0; i < data.rows; ++i) {
    std::vector<std::pair<float, int64_t>> own;
    for (int64_t n = 0; n < kOthers; ++n) {
      const int64_t other = (i + 1 + n * 1009 + i * i % 997) % data.rows;
      double square = 0;
      for (int64_t c = 0; c < data.cols; ++c) square += std::pow(data.row(i)[c] - data.row(other)[c], 2);
      own.emplace_back(static_cast<float>(std::sqrt(square)), other);
    }
    std::sort(own.begin(), own.end());
    for (int64_t n = 0; n < kOthers; ++n) {
      any.view().distances[i * kOthers + n] = own[static_cast<size_t>(n)].first;
      any.view().ids[i * kOthers + n] = own[static_cast<size_t>(n)].second;
    }
  }
  const auto warning_of = [&](const auto& add) {
    std::string said;
    Index index("Graph16", {});
    add(index, on_cpu().with_log([&](LogLevel level, std::string_view line) {
      if (level == LogLevel::warning && line.find("not found by a short walk") != line.npos) said += line;
    }));
    EXPECT_EQ(said.empty(), index.info().lost * 10000 <= data.rows) << index.info().lost;
    return said;
  };
  const KnnGraph start(std::move(any), Metric::l2, on_cpu());
  const std::string said =
      warning_of([&](Index& index, const Resources& given) { index.add(data.view(), {}, start, given); });
  EXPECT_THAT(said, HasSubstr("search with a wider beam, or build it with a larger degree than Graph16"));
  EXPECT_EQ(warning_of([&](Index& index, const Resources& given) { index.add(data.view(), Ownership::copy, given); }),
            "");
}

}  // namespace
}  // namespace kith
