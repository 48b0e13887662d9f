#include <kith/error.hpp>
#include <kith/graph_recall.hpp>
#include <kith/index_graph.hpp>

#include "exact/exact_check.hpp"
#include "graph/same_graph.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

TEST(IndexGraph, OfAFlatIndexIsExact) {
  for (const Shape shape : {Shape::gaussian, Shape::near_duplicates, Shape::all_equal}) {
    const auto x = make_floats(shape, 500, 7, 3);
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
      Index index("Flat", {.metric = metric});
      index.add(x.view(), Ownership::copy, on_cpu());
      const KnnGraph graph = knn_graph(index, x.view(), {.k = 6}, on_cpu());
      graph.validate(on_cpu());
      EXPECT_EQ(graph.report().method, "index");
      EXPECT_EQ(graph.metric(), metric);
      expect_same_bytes(knn_graph(x.view(), {.k = 6, .metric = metric, .method = GraphMethod::exact}, on_cpu()), graph);
    }
  }
}

TEST(IndexGraph, OfListsIsAsGoodAsTheirSearches) {
  const auto x = make_floats(Shape::gaussian, 3000, 8, 3);
  Index index("IVF30,Flat");
  index.train(x.view(), on_cpu());
  index.add(x.view(), Ownership::copy, on_cpu());
  const auto recall = [&](int64_t probes) {
    const KnnGraph graph = knn_graph(index, x.view(), {.k = 5, .probes = probes}, on_cpu());
    graph.validate(on_cpu());
    return measure_recall(graph, x.view(), {}, on_cpu()).recall;
  };
  EXPECT_LT(recall(1), recall(10));
  EXPECT_EQ(recall(30), 1);
}

TEST(IndexGraph, FewRowsAndOtherVectors) {
  const auto x = make_floats(Shape::gaussian, 3, 4, 3);
  Index index("Flat");
  EXPECT_EQ(knn_graph(index, x.view().slice(0, 0), {.k = 4}, on_cpu()).rows(), 0);
  index.add(x.view(), Ownership::copy, on_cpu());
  const KnnGraph graph = knn_graph(index, x.view(), {.k = 4}, on_cpu());
  graph.validate(on_cpu());
  EXPECT_EQ(graph.ids(1)[2], -1);
  EXPECT_THROW(knn_graph(index, x.view().slice(0, 2), {.k = 4}, on_cpu()), InvalidArgument);
  Index other("Flat");
  const int64_t ids[] = {5, 6, 7};
  other.add(x.view(), VectorView<const int64_t>{ids, 3, {}}, Ownership::copy, on_cpu());
  EXPECT_THROW(knn_graph(other, x.view(), {.k = 2}, on_cpu()), InvalidArgument);
}

}  // namespace
}  // namespace kith
