#include <kith/smooth_paths.hpp>
#include <kith/spanning_tree.hpp>

#include <kith/error.hpp>

#include "exact/exact_check.hpp"
#include "graph/random_graphs.hpp"
#include "paths/boruvka.hpp"
#include "reference/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

Resources with(int threads, int64_t bytes = kNoLimit) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = threads;
  options.host_memory_limit = bytes;
  return Resources(options);
}

std::vector<int64_t> rows_of(const SmoothPath& path) { return {path.begin(), path.end()}; }

std::vector<reference::Edge> forest_of(const KnnGraph& graph, const Resources& resources = on_cpu()) {
  const EdgeLists edges(graph, {}, resources);
  std::vector<reference::Edge> forest;
  boruvka(edges, resources).each_edge([&](const ForestEdge& edge) {
    forest.push_back({key_of_ordered(edge.key), edge.smaller, edge.larger});
  });
  std::sort(forest.begin(), forest.end());
  return forest;
}

// Sparse and dense, with few distances and many, in parts.
const GraphShape kShapes[] = {{2, 1},         {3, 2, 1, 1},     {30, 2},           {30, 5, 1, 3},       {60, 3, 1, 5, true},
                              {60, 4, 3, 10}, {90, 1, 1, 1000}, {90, 6, 2, 1},     {90, 9, 1, 4, true}, {120, 2, 7, 1 << 20},
                              {120, 3},       {70, 40, 1, 50},  {70, 40, 2, 2, true}};

TEST(Boruvka, FindsKruskalsForest) {
  for (const GraphShape& shape : kShapes) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(::testing::Message() << shape.rows << " rows, k " << shape.k << ", seed " << seed);
      const KnnGraph graph = random_graph(shape, seed);
      ASSERT_EQ(forest_of(graph), reference::spanning_forest(reference::edges_of(graph), shape.rows));
    }
  }
}

TEST(SmoothPaths, WidthsAreTheLeastLargestSteps) {
  for (const GraphShape& shape : kShapes) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      SCOPED_TRACE(::testing::Message() << shape.rows << " rows, k " << shape.k << ", seed " << seed);
      const KnnGraph graph = random_graph(shape, seed);
      const SmoothPaths paths(graph, on_cpu());
      const std::vector<float> expected = reference::widths(reference::edges_of(graph), shape.rows);
      std::vector<int64_t> pairs;
      for (int64_t a = 0; a < shape.rows; ++a) {
        for (int64_t b = 0; b < shape.rows; ++b) {
          pairs.insert(pairs.end(), {a, b});
          ASSERT_EQ(paths.width(a, b), expected[static_cast<size_t>(a * shape.rows + b)]) << a << " " << b;
        }
      }
      std::vector<float> widths(expected.size());
      paths.widths(pairs.data(), shape.rows * shape.rows, widths.data(), on_cpu());
      ASSERT_EQ(widths, expected);
    }
  }
}

TEST(SmoothPaths, PathsHaveTheFewestStepsAndAreTheFirstOfThose) {
  for (const GraphShape& shape : kShapes) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      SCOPED_TRACE(::testing::Message() << shape.rows << " rows, k " << shape.k << ", seed " << seed);
      const KnnGraph graph = random_graph(shape, seed);
      const SmoothPaths paths(graph, on_cpu());
      const std::vector<reference::Edge> edges = reference::edges_of(graph);
      for (int64_t a = 0; a < shape.rows; a += 1 + a % 3) {
        for (int64_t b = 0; b < shape.rows; b += 1 + b % 4) {
          const SmoothPath path = paths.path(a, b, PathBy::steps, on_cpu());
          ASSERT_EQ(path.width, paths.width(a, b));
          ASSERT_EQ(rows_of(path), std::isinf(path.width)
                                       ? std::vector<int64_t>()
                                       : reference::path(edges, shape.rows, a, b, path.width));
        }
      }
    }
  }
}

TEST(SmoothPaths, TheTreesPathsAreTheForests) {
  for (const GraphShape& shape : kShapes) {
    const KnnGraph graph = random_graph(shape, 4);
    const SmoothPaths paths(graph, on_cpu());
    const std::vector<reference::Edge> forest =
        reference::spanning_forest(reference::edges_of(graph), shape.rows);
    for (int64_t a = 0; a < shape.rows; a += 2) {
      for (int64_t b = 0; b < shape.rows; b += 3) {
        const SmoothPath path = paths.path(a, b, PathBy::tree, on_cpu());
        ASSERT_EQ(rows_of(path), reference::forest_path(forest, shape.rows, a, b)) << shape.rows << ": " << a << " " << b;
        ASSERT_EQ(path.width, paths.width(a, b));
      }
    }
  }
}

// Rounds in which one long row of parts joins: ways are as long as there are rows.
TEST(SmoothPaths, LongChains) {
  const int64_t rows = 20'000;
  const KnnGraph graphs[] = {chain(rows, [](int64_t i) { return i; }), chain(rows, [&](int64_t i) { return rows - i; }),
                             chain(rows, [](int64_t i) { return (i * 7919) % 10'007; }),
                             chain(rows, [](int64_t) { return 1; })};
  for (const KnnGraph& graph : graphs) {
    const SmoothPaths paths(graph, on_cpu());
    EXPECT_EQ(paths.parts(), 1);
    for (const PathBy by : {PathBy::steps, PathBy::tree}) {
      const SmoothPath path = paths.path(rows - 1, 3, by, on_cpu());
      ASSERT_EQ(path.size, rows - 3);
      for (int64_t i = 0; i < path.size; ++i) ASSERT_EQ(path.begin()[i], rows - 1 - i);
      EXPECT_EQ(path.width, *std::max_element(graph.distances(3), graph.distances(rows - 1)));
    }
  }
}

TEST(SmoothPaths, HardCases) {
  const SmoothPaths none(KnnGraph(), on_cpu());
  EXPECT_EQ(none.rows(), 0);
  EXPECT_EQ(none.parts(), 0);
  EXPECT_THROW(none.width(0, 0), InvalidArgument);

  const SmoothPaths one(chain(1, [](int64_t) { return 0; }), on_cpu());
  EXPECT_EQ(one.parts(), 1);
  EXPECT_EQ(one.width(0, 0), 0);
  EXPECT_THAT(rows_of(one.path(0, 0, PathBy::steps, on_cpu())), ElementsAre(0));
  EXPECT_THAT(rows_of(one.path(0, 0, PathBy::tree, on_cpu())), ElementsAre(0));

  Neighbors apart(4, 1, on_cpu());  // 0 - 1 and 2 - 3
  const int64_t ids[] = {1, 0, 3, 2};
  std::copy_n(ids, 4, apart.view().ids);
  std::fill_n(apart.view().distances, 4, 2.0f);
  const SmoothPaths two(KnnGraph(std::move(apart), Metric::l1, on_cpu()), on_cpu());
  EXPECT_EQ(two.parts(), 2);
  EXPECT_EQ(two.width(0, 1), 2);
  EXPECT_EQ(two.width(1, 2), kInf);
  for (const PathBy by : {PathBy::steps, PathBy::tree}) {
    const SmoothPath path = two.path(0, 3, by, on_cpu());
    EXPECT_EQ(path.size, 0);
    EXPECT_EQ(path.width, kInf);
  }
}

TEST(SmoothPaths, Refusals) {
  const SmoothPaths paths(chain(5, [](int64_t i) { return i; }), on_cpu());
  for (const int64_t row : {int64_t{-1}, int64_t{5}, INT64_MAX}) {
    EXPECT_THROW(paths.width(row, 0), InvalidArgument);
    EXPECT_THROW(paths.path(0, row), InvalidArgument);
    const int64_t pairs[] = {0, 1, 2, row};
    float out[] = {-1, -1};
    EXPECT_THROW(paths.widths(pairs, 2, out, on_cpu()), InvalidArgument);
    EXPECT_EQ(out[0], -1);
  }
  try {
    paths.width(0, 9);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("row 9; the graph's are 0 to 4"));
  }
  EXPECT_THROW(paths.path(0, 1, static_cast<PathBy>(7), on_cpu()), InvalidArgument);
  EXPECT_THROW(parse_path_by("width"), InvalidArgument);
  EXPECT_EQ(parse_path_by("tree"), PathBy::tree);

  const auto x = reference::make_floats(reference::Shape::gaussian, 20, 3, 1);
  const KnnGraph products = knn_graph(x.view(), {3, Metric::inner_product}, on_cpu());
  EXPECT_THROW(SmoothPaths(products, on_cpu()), InvalidArgument);

  // A graph whose memory its owner changed.
  std::vector<int64_t> ids{1, 0};
  std::vector<float> distances{1, 1};
  const KnnGraph graph({ids.data(), distances.data(), 2, 1, {}}, nullptr, Metric::l2, on_cpu());
  ids[1] = 5'000'000'000;
  EXPECT_THROW(SmoothPaths(graph, on_cpu()), InvalidArgument);
  ids[1] = 0;
  distances[0] = std::nanf("");
  EXPECT_THROW(SmoothPaths(graph, on_cpu()), InvalidArgument);

  const std::vector<int64_t> sound{1, 2, /**/ 0, 2, /**/ 0, 1};
  std::vector<float> steps{1, 2, /**/ 1, 2, /**/ 2, 2};
  for (const std::vector<int64_t>& wrong : {std::vector<int64_t>{1, 0, /**/ 0, 2, /**/ 0, 1},  // itself
                                            std::vector<int64_t>{1, 2, /**/ 2, 2, /**/ 0, 1},  // twice
                                            std::vector<int64_t>{1, 2, /**/ 0, 2, /**/ -1, 1}}) {
    ids = sound;
    const KnnGraph three({ids.data(), steps.data(), 3, 2, {}}, nullptr, Metric::l2, on_cpu());
    std::copy(wrong.begin(), wrong.end(), ids.begin());
    EXPECT_THROW(SmoothPaths(three, on_cpu()), InvalidArgument);
    EXPECT_THROW(spanning_tree(three, {}, on_cpu()), InvalidArgument);
    std::copy(sound.begin(), sound.end(), ids.begin());
    steps[0] = 3;  // behind it comes 2
    EXPECT_THROW(SmoothPaths(three, on_cpu()), InvalidArgument);
    steps[0] = 1;
    EXPECT_NO_THROW(SmoothPaths(three, on_cpu()));
  }
}

TEST(SmoothPaths, ThreadsChangeNothing) {
  const KnnGraph graph = random_graph({30'000, 6, 3, 40}, 1);
  const std::vector<reference::Edge> expected = forest_of(graph, with(1));
  EXPECT_EQ(forest_of(graph, with(4)), expected);
  const SmoothPaths paths(graph, with(4));
  const SmoothPaths alone(graph, with(1));
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int64_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int64_t i = 0; i < 50; ++i) {
        const int64_t a = (caller * 7919 + i * 104'729) % 30'000;
        const int64_t b = (a * 31 + 3 * i) % 30'000;
        for (const PathBy by : {PathBy::steps, PathBy::tree}) {
          if (rows_of(paths.path(a, b, by, on_cpu())) != rows_of(alone.path(a, b, by, on_cpu()))) ++wrong;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(SmoothPaths, KeepsItsMemoryLimit) {
  const int64_t rows = 40'000;
  const KnnGraph graph = random_graph({rows, 6}, 1);
  const int64_t enough = rows * (6 * 18 + 80) + (1 << 20);
  const SmoothPaths paths(graph, with(2, enough));
  EXPECT_EQ(paths.width(3, 4), SmoothPaths(graph, on_cpu()).width(3, 4));
  EXPECT_THROW(SmoothPaths(graph, with(2, rows * 6 * 16)), OutOfMemory);
  EXPECT_THROW(paths.path(3, 4, PathBy::steps, with(2, 1000)), OutOfMemory);
  EXPECT_GT(paths.path(3, 4, PathBy::steps, with(2, rows * 8 + 10'000)).size, 1);
}

// The limit that an error names is enough, and not far from what is needed.
TEST(SmoothPaths, NamesTheLimitThatWouldDo) {
  for (const GraphShape& shape : {GraphShape{40'000, 6}, GraphShape{30'000, 20}, GraphShape{9'000, 1, 100}}) {
    const KnnGraph graph = random_graph(shape, 1);
    for (const int threads : {1, 3}) {
      try {
        const SmoothPaths paths(graph, with(threads, 100'000));
        FAIL() << "100,000 bytes were enough";
      } catch (const OutOfMemory& error) {
        EXPECT_THAT(error.what(), HasSubstr("would do"));
        EXPECT_NO_THROW(SmoothPaths(graph, with(threads, error.bytes_needed())));
        EXPECT_THROW(SmoothPaths(graph, with(threads, error.bytes_needed() * 2 / 3)), OutOfMemory);
      }
    }
  }
}

// Parts that are done are not carried from level to level.
TEST(SmoothPaths, ManySmallPartsTakeNoMoreMemory) {
  const int64_t rows = 60'000;
  Neighbors neighbors(rows, 1, on_cpu());
  for (int64_t i = 0; i < rows; ++i) {  // pairs, and one long chain whose rounds go on
    const bool chained = i < 2'000;
    neighbors.view().ids[i] = chained ? (i + 1 < 2'000 ? i + 1 : -1) : i ^ 1;
    neighbors.view().distances[i] = chained ? static_cast<float>(i % 7 + 1) : 1.0f;
  }
  const KnnGraph graph(std::move(neighbors), Metric::l2, on_cpu());
  const SmoothPaths paths(graph, with(1, rows * (18 + 12 + 72) + (1 << 20)));
  EXPECT_EQ(paths.parts(), 1 + 29'000);
  EXPECT_EQ(paths.width(0, 1'999), 7);
  EXPECT_EQ(paths.width(30'000, 30'001), 1);
  EXPECT_EQ(paths.width(0, 30'000), kInf);
  EXPECT_EQ(paths.width(30'000, 30'002), kInf);
}

TEST(SmoothPaths, CanBeStopped) {
  const KnnGraph graph = random_graph({50'000, 6}, 1);
  CancelToken cancel;
  std::vector<std::string> stages;
  const Resources resources = on_cpu().with_cancel(cancel).with_progress([&](const Progress& progress) {
    stages.emplace_back(progress.stage);
    if (progress.stage == "sort edges") cancel.request();
  });
  EXPECT_THROW(SmoothPaths(graph, resources), Cancelled);
  EXPECT_THAT(stages, ::testing::Contains("turn edges"));
  EXPECT_THAT(stages, ::testing::Not(::testing::Contains("join rows")));
  const SmoothPaths paths(graph, on_cpu());
  EXPECT_THROW(paths.path(0, 40'000, PathBy::steps, resources), Cancelled);
  EXPECT_GT(paths.path(0, 40'000, PathBy::steps, on_cpu()).size, 2);  // the next search is none the worse
}

}  // namespace
}  // namespace kith
