#include "graph/toy_builder.hpp"

#include "exact/exact_check.hpp"
#include "graph/same_graph.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

namespace kith {
namespace {

TEST(ToyBuilder, NeedsTheListsAlone) {
  const auto x = reference::make_floats(reference::Shape::gaussian, 600, 3, 5);
  const Resources resources = on_cpu();
  const KnnGraph graph = graph_by_columns(x.view(), 8, 15, resources);
  graph.validate(resources);
  EXPECT_EQ(graph.report().method, "columns");
  ASSERT_EQ(graph.report().rounds.size(), 3u);
  EXPECT_LE(graph.report().rounds[2].phi, graph.report().rounds[0].phi);
  ASSERT_TRUE(graph.report().recall);
  EXPECT_GT(graph.report().recall->recall, 0.5);
  EXPECT_LT(graph.report().recall->recall, 1.0);

  // A window that holds all rows compares every pair.
  const KnnGraph all = graph_by_columns(x.view(), 8, 600, resources);
  const KnnGraph exact = knn_graph(x.view(), {.k = 8, .method = GraphMethod::exact}, resources);
  expect_same_bytes(exact, all);
}

}  // namespace
}  // namespace kith
