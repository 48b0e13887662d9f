#include <kith/graph_recall.hpp>

#include <kith/error.hpp>

#include "exact/exact_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

// Each row's neighbours from `first` on: as many true ones are missing.
KnnGraph without_first(const KnnGraph& graph, int64_t first, int64_t every) {
  Neighbors neighbors(graph.rows(), graph.k() - first, on_cpu());
  const NeighborsView out = neighbors.view();
  for (int64_t i = 0; i < graph.rows(); ++i) {
    const int64_t from = i % every == 0 ? first : 0;
    std::copy_n(graph.ids(i) + from, out.k, out.ids + i * out.k);
    std::copy_n(graph.distances(i) + from, out.k, out.distances + i * out.k);
  }
  return {std::move(neighbors), graph.metric(), on_cpu()};
}

TEST(GraphRecall, IsTheShareOfTheTrueNeighbours) {
  for (const Metric metric : {Metric::l2, Metric::inner_product}) {
    const auto x = make_floats(Shape::gaussian, 300, 6, 1);
    const KnnGraph graph = knn_graph(x.view(), {16, metric}, on_cpu());
    const GraphRecall whole = measure_recall(graph, x.view(), {.rows = 1000, .seed = 1}, on_cpu());
    EXPECT_EQ(whole.recall, 1);
    EXPECT_EQ(whole.recall_at_10, 1);
    EXPECT_EQ(whole.standard_error, 0);
    EXPECT_EQ(whole.rows, 300);
    const GraphRecall less = measure_recall(without_first(graph, 2, 1), x.view(), {.rows = 100}, on_cpu());
    EXPECT_NEAR(less.recall, 12.0 / 14, 1e-12);
    EXPECT_NEAR(less.recall_at_10, 8.0 / 10, 1e-12);
    EXPECT_NEAR(less.standard_error, 0, 1e-9);
    EXPECT_EQ(less.rows, 100);
  }
}

TEST(GraphRecall, TheErrorIsOfTheRightSize) {
  const auto x = make_floats(Shape::gaussian, 2000, 4, 1);
  const KnnGraph graph = without_first(knn_graph(x.view(), {12, Metric::l2}, on_cpu()), 4, 2);
  const double truth = measure_recall(graph, x.view(), {.rows = 2000}, on_cpu()).recall;
  EXPECT_NEAR(truth, 0.75, 1e-9);  // every other row lacks half of its eight
  int within = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const GraphRecall part = measure_recall(graph, x.view(), {.rows = 200, .seed = seed}, on_cpu());
    within += std::abs(part.recall - truth) < 2 * part.standard_error;
  }
  EXPECT_GE(within, 34);  // 38 are expected
}

TEST(GraphRecall, GoesByTheVectorsWhateverDistancesTheGraphTells) {
  const auto x = make_floats(Shape::gaussian, 300, 6, 1);
  const KnnGraph graph = without_first(knn_graph(x.view(), {16, Metric::l2}, on_cpu()), 2, 1);
  for (const float told : {0.0f, 1e9f}) {  // of codes, or in another unit
    Neighbors neighbors(graph.rows(), graph.k(), on_cpu());
    std::copy_n(graph.ids(), graph.rows() * graph.k(), neighbors.view().ids);
    std::fill_n(neighbors.view().distances, graph.rows() * graph.k(), told);
    const KnnGraph other(std::move(neighbors), Metric::l2, on_cpu());
    EXPECT_NEAR(measure_recall(other, x.view(), {}, on_cpu()).recall, 12.0 / 14, 1e-12);
  }
}

TEST(GraphRecall, DuplicatesCountWhicheverIsNamed) {
  const auto x = make_floats(Shape::all_equal, 50, 3, 1);
  Neighbors neighbors(50, 3, on_cpu());
  for (int64_t i = 0; i < 150; ++i) {  // not the first in order
    neighbors.view().ids[i] = (i / 3 + 10 + i % 3) % 50;
    neighbors.view().distances[i] = 0;
  }
  const KnnGraph graph(std::move(neighbors), Metric::l2, on_cpu());
  EXPECT_EQ(measure_recall(graph, x.view(), {}, on_cpu()).recall, 1);
}

TEST(GraphRecall, Refusals) {
  const auto x = make_floats(Shape::gaussian, 30, 3, 1);
  const KnnGraph graph = knn_graph(x.view(), {3, Metric::l2}, on_cpu());
  EXPECT_THROW(measure_recall(graph, x.view().slice(0, 20), {}, on_cpu()), InvalidArgument);
  EXPECT_THROW(measure_recall(graph, x.view(), {.rows = 0}, on_cpu()), InvalidArgument);
  EXPECT_THROW(measure_recall(KnnGraph(), MatrixView(), {}, on_cpu()), InvalidArgument);
}

}  // namespace
}  // namespace kith
