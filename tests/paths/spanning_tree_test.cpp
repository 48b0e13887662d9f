#include <kith/spanning_tree.hpp>

#include <kith/error.hpp>
#include <kith/pairwise_distances.hpp>

#include "exact/exact_check.hpp"
#include "graph/random_graphs.hpp"
#include "reference/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kApart = std::numeric_limits<float>::infinity();

std::vector<reference::Edge> edges_of(const SpanningTree& tree) {
  std::vector<reference::Edge> edges;
  for (int64_t i = 0; i < tree.size(); ++i) edges.push_back({tree.weights()[i], tree.ends(i)[0], tree.ends(i)[1]});
  return edges;
}

std::string refusal_of(const KnnGraph& graph, const SpanningTreeParams& params) {
  try {
    (void)spanning_tree(graph, params, on_cpu());
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no InvalidArgument was thrown";
}

TEST(SpanningTree, IsKruskalsInItsOrder) {
  for (const uint32_t distances : {1u, 7u, 1u << 20}) {
    const KnnGraph graph = random_graph({150, 9, 1, distances}, 2);
    const std::vector<reference::Edge> expected =
        reference::spanning_forest(reference::edges_of(graph), graph.rows());
    ASSERT_EQ(expected.size(), 149u);
    EXPECT_EQ(edges_of(spanning_tree(graph, {}, on_cpu())), expected);
  }
  EXPECT_EQ(spanning_tree(KnnGraph(), {}, on_cpu()).size(), 0);
  EXPECT_EQ(spanning_tree(chain(1, [](int64_t) { return 1; }), {}, on_cpu()).size(), 0);
}

TEST(SpanningTree, ByMutualReachability) {
  const auto x = make_floats(Shape::near_duplicates, 130, 3, 1);
  const KnnGraph graph = knn_graph(x.view(), {129, Metric::l2}, on_cpu());
  for (const int64_t samples : {1, 4, 60, 0}) {
    std::vector<reference::Edge> edges = reference::edges_of(graph);
    const int64_t at = samples == 0 ? 4 : samples - 1;  // the fifth, where nothing is said
    for (reference::Edge& edge : edges) {
      edge.weight = std::max({edge.weight, graph.distances(edge.smaller)[at], graph.distances(edge.larger)[at]});
    }
    std::sort(edges.begin(), edges.end());
    EXPECT_EQ(edges_of(spanning_tree(graph, {EdgeWeights::mutual_reachability, samples}, on_cpu())),
              reference::spanning_forest(edges, graph.rows()))
        << samples;
  }
}

TEST(SpanningTree, PartsAreCountedOrJoined) {
  const KnnGraph graph = random_graph({120, 30, 3, 1000}, 5);
  EXPECT_THAT(refusal_of(graph, {}), HasSubstr("the graph has 3 parts"));
  EXPECT_THAT(refusal_of(graph, {.unconnected = Unconnected::nearest}), HasSubstr("give them, too"));
  const SpanningTree tree = spanning_tree(graph, {.unconnected = Unconnected::at_inf}, on_cpu());
  std::vector<reference::Edge> expected = reference::spanning_forest(reference::edges_of(graph), 120);
  expected.push_back({kApart, 0, 1});
  expected.push_back({kApart, 0, 2});
  EXPECT_EQ(edges_of(tree), expected);
  const RowLabels below = tree.labels(1e30, on_cpu());
  EXPECT_EQ(below.sets, 3);
  for (int64_t i = 0; i < 120; ++i) EXPECT_EQ(below.begin()[i], i % 3);
  EXPECT_EQ(tree.labels(kApart, on_cpu()).sets, 1);
}

// Parts of one row, of a few, and larger than those that are searched together, joined as the whole graph would be.
TEST(SpanningTree, NearestJoinsMakeTheTreeOfAllPairs) {
  for (const Metric metric : {Metric::l2, Metric::l1, Metric::cosine}) {
    const int64_t rows = 700;
    auto x = make_floats(Shape::gaussian, rows, 2, 9);
    for (int64_t i = 0; i < rows; ++i) {  // clusters of many sizes, some far away
      x.row(i)[0] += static_cast<float>(i < 400 ? i % 4 * 40 : i % 37 * 300);
      x.row(i)[1] += static_cast<float>(i < 400 ? 0 : 90 * (i % 11));
    }
    const KnnGraph sparse = knn_graph(x.view(), {2, metric}, on_cpu());
    const int64_t parts = sparse.components(on_cpu()).sets;
    ASSERT_GT(parts, 10);
    const KnnGraph full = knn_graph(x.view(), {rows - 1, metric}, on_cpu());
    const SpanningTree expected = spanning_tree(full, {}, on_cpu());
    const SpanningTree tree = spanning_tree(sparse, x.view(), {.unconnected = Unconnected::nearest}, on_cpu());
    ASSERT_EQ(tree.size(), rows - 1);
    // The graph's own edges are not all of the full tree, but the joins are the shortest that there are.
    std::vector<reference::Edge> edges = reference::edges_of(sparse);
    const std::vector<reference::Edge> forest = reference::spanning_forest(edges, rows);
    std::vector<reference::Edge> all = forest;
    for (const reference::Edge& edge : reference::edges_of(full)) all.push_back(edge);
    std::vector<reference::Edge> joined = reference::spanning_forest(all, rows);  // the forest first
    std::sort(joined.begin(), joined.end());
    EXPECT_EQ(edges_of(tree), joined) << name_of(metric);
    EXPECT_EQ(expected.size(), tree.size());
  }
}

TEST(SpanningTree, LinksAndLabels) {
  // 0 -1- 1 -4- 2 -2- 3
  const KnnGraph graph = chain(4, [](int64_t i) { return i == 0 ? 1 : i == 1 ? 4 : 2; });
  const SpanningTree tree = spanning_tree(graph, {}, on_cpu());
  const HostBuffer linkage = tree.single_linkage(on_cpu());
  const auto* const z = linkage.as<double>();
  EXPECT_THAT(std::vector<double>(z, z + 12), ElementsAre(0, 1, 1, 2, /**/ 2, 3, 2, 2, /**/ 4, 5, 4, 4));
  const auto labels = [&](double height) {
    const RowLabels found = tree.labels(height, on_cpu());
    return std::vector<int64_t>(found.begin(), found.end());
  };
  EXPECT_THAT(labels(0.5), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(labels(1), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(labels(2), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(labels(3.999), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(labels(4), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(labels(-1), ElementsAre(0, 1, 2, 3));
  EXPECT_THROW(tree.labels(std::nan(""), on_cpu()), InvalidArgument);
}

TEST(SpanningTree, NamesTheLimitThatWouldDo) {
  const KnnGraph graph = random_graph({40'000, 16}, 1);
  const auto with = [](int64_t bytes) {
    ResourceOptions options;
    options.device = Device::cpu();
    options.threads = 2;
    options.host_memory_limit = bytes;
    return Resources(options);
  };
  for (const SpanningTreeParams& params : {SpanningTreeParams{.unconnected = Unconnected::at_inf}, SpanningTreeParams{}}) {
    try {
      (void)spanning_tree(graph, params, with(100'000));
      FAIL() << "100,000 bytes were enough";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(spanning_tree(graph, params, with(error.bytes_needed())).size(), 39'999);
    }
  }
}

TEST(SpanningTree, Refusals) {
  const auto x = make_floats(Shape::gaussian, 20, 3, 1);
  const KnnGraph graph = knn_graph(x.view(), {6, Metric::l2}, on_cpu());
  EXPECT_THAT(refusal_of(knn_graph(x.view(), {6, Metric::inner_product}, on_cpu()), {}), HasSubstr("no distance"));
  EXPECT_THAT(refusal_of(graph, {.min_samples = 3}), HasSubstr("mutual_reachability"));
  EXPECT_THAT(refusal_of(graph, {EdgeWeights::mutual_reachability, 7}), HasSubstr("1 to k = 6"));
  EXPECT_THAT(refusal_of(graph, {EdgeWeights::mutual_reachability, -1}), HasSubstr("min_samples = -1"));
  EXPECT_THAT(refusal_of(chain(3, [](int64_t i) { return i; }), {EdgeWeights::mutual_reachability, 1}),
              HasSubstr("row 2 has fewer than min_samples = 1"));
  EXPECT_THAT(refusal_of(graph, {.weights = static_cast<EdgeWeights>(9)}), HasSubstr("weights 9"));
  EXPECT_THROW(parse_unconnected("join"), InvalidArgument);
  EXPECT_THROW(spanning_tree(graph, x.view().slice(0, 10), {}, on_cpu()), InvalidArgument);
}

}  // namespace
}  // namespace kith
