#include <kith/knn_graph.hpp>

#include <kith/error.hpp>

#include "exact/exact_check.hpp"
#include "graph/random_graphs.hpp"
#include "graph/same_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

TEST(KnnGraph, HoldsTheNearestOthersOfEveryRow) {
  for (const Shape shape : {Shape::gaussian, Shape::all_equal, Shape::near_duplicates, Shape::mixed_norms}) {
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
      for (const int64_t rows : {1, 2, 5, 150}) {
        SCOPED_TRACE(::testing::Message() << shape << " " << name_of(metric) << " " << rows);
        const auto x = make_floats(shape, rows, 7, 1);
        const KnnGraph graph = knn_graph(x.view(), {6, metric}, on_cpu());
        const reference::Result all = reference::knn(x, x, {rows, metric});
        for (int64_t i = 0; i < rows; ++i) {
          int64_t j = 0;
          for (int64_t n = 0; n < rows && j < 6; ++n) {
            const auto at = static_cast<size_t>(i * rows + n);
            if (all.ids[at] == i) continue;
            ASSERT_EQ(graph.ids(i)[j], all.ids[at]);
            ASSERT_EQ(graph.distances(i)[j], all.distances[at]);
            ++j;
          }
          for (; j < 6; ++j) ASSERT_EQ(graph.ids(i)[j], -1);
        }
      }
    }
  }
}

TEST(KnnGraph, BecomesASparseMatrixOfDistances) {
  const auto x = make_floats(Shape::gaussian, 40, 3, 1);
  const KnnGraph graph = knn_graph(x.view(), {50, Metric::l2}, on_cpu());  // more than there are: padded
  const CsrMatrix matrix = graph.to_csr(on_cpu());
  ASSERT_EQ(matrix.size(), 40 * 39);
  for (int64_t i = 0; i < 40; ++i) {
    ASSERT_EQ(matrix.offsets()[i + 1] - matrix.offsets()[i], 39);
    for (int64_t e = matrix.offsets()[i]; e < matrix.offsets()[i + 1]; ++e) {
      const bool first = e == matrix.offsets()[i];
      ASSERT_TRUE(first || matrix.columns()[e - 1] < matrix.columns()[e]);
      ASSERT_NE(matrix.columns()[e], i);
      ASSERT_EQ(matrix.values()[e], reference::canonical(Metric::l2, x.row(i), x.row(matrix.columns()[e]), 3));
    }
  }
}

// Entries as a dense matrix; NaN where there is none.
std::vector<float> dense(const CsrMatrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.rows() * matrix.rows()), std::nanf(""));
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    for (int64_t e = matrix.offsets()[i]; e < matrix.offsets()[i + 1]; ++e) {
      EXPECT_TRUE(e == matrix.offsets()[i] || matrix.columns()[e - 1] < matrix.columns()[e]);
      values[static_cast<size_t>(i * matrix.rows() + matrix.columns()[e])] = matrix.values()[e];
    }
  }
  return values;
}

TEST(KnnGraph, BecomesMatricesOfEdgesTurnedAndBothWays) {
  for (const GraphShape& shape : {GraphShape{1, 1}, GraphShape{60, 4}, GraphShape{90, 7, 2, 5, true}}) {
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
      const KnnGraph graph = random_graph(shape, 3, metric);
      const int64_t n = shape.rows;
      const std::vector<float> there = dense(graph.to_csr(on_cpu()));
      const std::vector<float> back = dense(graph.reversed(on_cpu()));
      const std::vector<float> either = dense(graph.symmetric(on_cpu()));
      const std::vector<float> both = dense(graph.mutual(on_cpu()));
      const HostBuffer degrees = graph.in_degrees(on_cpu());
      for (int64_t i = 0; i < n; ++i) {
        int64_t arrived = 0;
        for (int64_t j = 0; j < n; ++j) {
          const auto at = static_cast<size_t>(i * n + j);
          const float one = there[at];
          const float other = there[static_cast<size_t>(j * n + i)];
          const float nearer = metric == Metric::l2 ? std::fmin(one, other) : std::fmax(one, other);
          ASSERT_TRUE(back[at] == other || (std::isnan(back[at]) && std::isnan(other)));
          ASSERT_TRUE(either[at] == nearer || (std::isnan(either[at]) && std::isnan(nearer)));
          const bool in_both = !std::isnan(one) && !std::isnan(other);
          ASSERT_TRUE(in_both ? both[at] == nearer : std::isnan(both[at]));
          arrived += !std::isnan(other);
        }
        ASSERT_EQ(degrees.as<int64_t>()[i], arrived);
      }
    }
  }
}

TEST(KnnGraph, FallsIntoComponents) {
  for (const int64_t parts : {1, 2, 7}) {
    const KnnGraph graph = random_graph({5'000, 12 * parts, parts}, 1);  // so many join all rows of a part
    const RowLabels labels = graph.components(on_cpu());
    ASSERT_EQ(labels.sets, parts);
    for (int64_t i = 0; i < labels.rows; ++i) ASSERT_EQ(labels.begin()[i], i % parts);
  }
  EXPECT_EQ(KnnGraph().components(on_cpu()).sets, 0);
  const RowLabels alone = random_graph({5, 1, 5}, 1).components(on_cpu());
  EXPECT_THAT(std::vector<int64_t>(alone.begin(), alone.end()), ::testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(KnnGraph, GivesUmapTheRowItselfFirst) {
  const auto x = make_floats(Shape::near_duplicates, 60, 4, 1);
  const KnnGraph graph = knn_graph(x.view(), {5, Metric::l2}, on_cpu());
  const Neighbors umap = graph.to_umap(on_cpu());
  ASSERT_EQ(umap.k(), 6);
  for (int64_t i = 0; i < 60; ++i) {
    EXPECT_EQ(umap.ids(i)[0], i);
    EXPECT_EQ(umap.distances(i)[0], 0.0f);
    for (int64_t j = 0; j < 5; ++j) {
      EXPECT_EQ(umap.ids(i)[j + 1], graph.ids(i)[j]);
      EXPECT_EQ(umap.distances(i)[j + 1], graph.distances(i)[j]);
    }
  }
  EXPECT_THROW(knn_graph(x.view(), {60, Metric::l2}, on_cpu()).to_umap(on_cpu()), InvalidArgument);
  EXPECT_THROW(knn_graph(x.view(), {5, Metric::inner_product}, on_cpu()).to_umap(on_cpu()), InvalidArgument);
}

KnnGraph graph_of(const std::vector<int64_t>& ids, int64_t k, std::vector<float> distances = {},
                  Metric metric = Metric::l2) {
  Neighbors neighbors(static_cast<int64_t>(ids.size()) / k, k, on_cpu());
  distances.resize(ids.size(), 1.0f);
  std::copy(ids.begin(), ids.end(), neighbors.view().ids);
  std::copy(distances.begin(), distances.end(), neighbors.view().distances);
  return {std::move(neighbors), metric, on_cpu()};
}

std::string refusal_of(const std::vector<int64_t>& ids, int64_t k, std::vector<float> distances = {},
                       Metric metric = Metric::l2) {
  try {
    (void)graph_of(ids, k, std::move(distances), metric);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no InvalidArgument was thrown";
}

TEST(KnnGraph, TakesNeighboursThatWereFoundElsewhere) {
  const KnnGraph graph = graph_of({2, 1, /**/ 0, -1, /**/ -1, -1}, 2);
  const CsrMatrix matrix = graph.to_csr(on_cpu());
  EXPECT_EQ(matrix.size(), 3);
  EXPECT_EQ(matrix.columns()[0], 1);
  EXPECT_EQ(matrix.columns()[1], 2);
  EXPECT_EQ(matrix.columns()[2], 0);
  EXPECT_EQ(graph_of({}, 2).rows(), 0);
}

TEST(KnnGraph, RefusesIdsThatAreNoNeighbours) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal_of({10'000'000, 0}, 1),
              HasSubstr("row 0 has the neighbour 10000000 in column 0; the graph has 2"));
  EXPECT_THAT(refusal_of({1, 2}, 1), HasSubstr("row 1 has the neighbour 2"));
  EXPECT_THAT(refusal_of({1, -2}, 1), HasSubstr("row 1 has the neighbour -2"));
  EXPECT_THAT(refusal_of({INT64_MIN, 0}, 1), HasSubstr("ids are 0 to 1"));
  EXPECT_THAT(refusal_of({1, 1}, 1), HasSubstr("row 1 is its own neighbour in column 0"));
  EXPECT_THAT(refusal_of({1, 2, 1, /**/ 0, 2, -1, /**/ 0, 1, -1}, 3), HasSubstr("row 0 has the neighbour 1 twice"));
  EXPECT_THAT(refusal_of({1, 2, /**/ -1, 2, /**/ 0, 1}, 2), HasSubstr("row 1 has the neighbour 2 in column 1, behind"));
  // The first of many wrong rows is named, whoever sees his first.
  std::vector<int64_t> many(100'000, 0);
  for (const int64_t wrong : {70'000, 31'234, 99'999}) many[static_cast<size_t>(wrong)] = wrong;
  many[0] = 1;
  EXPECT_THAT(refusal_of(many, 1), HasSubstr("row 31234 is its own neighbour"));
}

TEST(KnnGraph, RefusesDistancesThatAreNoneOrOutOfOrder) {
  using ::testing::HasSubstr;
  const float nan = std::nanf("");
  EXPECT_THAT(refusal_of({1, 0}, 1, {1, nan}), HasSubstr("row 1 has the distance nan in column 0"));
  const std::vector<int64_t> three{1, 2, /**/ 0, 2, /**/ 0, -1};
  EXPECT_THAT(refusal_of(three, 2, {1, 2, 3, 2.5f, 1, 0}), HasSubstr("row 1 has the distance 2.5 in column 1 behind 3"));
  EXPECT_THAT(refusal_of(three, 2, {2, 1, 3, 2, 1, 0}, Metric::inner_product), HasSubstr("no InvalidArgument"));
  EXPECT_THAT(refusal_of(three, 2, {2, 1, 2, 3, 1, 0}, Metric::inner_product), HasSubstr("row 1 has the distance 3"));
  EXPECT_THAT(refusal_of(three, 2, {1, 1, 3, 3, 1, nan}), HasSubstr("no InvalidArgument"));  // of nobody
}

TEST(KnnGraph, IsAHandleToMemoryOfOthers) {
  const auto arrays = std::make_shared<std::pair<std::vector<int64_t>, std::vector<float>>>();
  *arrays = {{1, 2, /**/ 0, 2, /**/ 1, 0}, {1, 2, /**/ 1, 3, /**/ 3, 4}};
  const std::weak_ptr<const void> alive = arrays;
  KnnGraph graph({arrays->first.data(), arrays->second.data(), 3, 2, {}}, arrays, Metric::l1, on_cpu());
  const int64_t* const ids = arrays->first.data();
  EXPECT_EQ(graph.ids(), ids);
  EXPECT_EQ(graph.report().method, "given");
  EXPECT_FALSE(graph.report().recall.has_value());
  arrays->first[3] = 7;  // behind its back
  EXPECT_THROW(graph.validate(on_cpu()), InvalidArgument);
  EXPECT_THROW(graph.to_csr(on_cpu()), InvalidArgument);
  EXPECT_THROW(graph.to_umap(on_cpu()), InvalidArgument);
}

TEST(KnnGraph, CopiesShareWhatNobodyChanges) {
  KnnGraph copy;
  EXPECT_EQ(copy.rows(), 0);
  EXPECT_EQ(copy.to_csr(on_cpu()).size(), 0);
  const int64_t* ids = nullptr;
  {
    const auto x = make_floats(Shape::gaussian, 30, 3, 1);
    const KnnGraph graph = knn_graph(x.view(), {4, Metric::l2}, on_cpu());
    ids = graph.ids();
    copy = graph.to(MemorySpace::host(), on_cpu());  // where it is
  }
  EXPECT_EQ(copy.ids(), ids);
  copy.validate(on_cpu());
}

TEST(KnnGraph, TellsHowItWasMade) {
  const auto x = make_floats(Shape::gaussian, 500, 3, 1);
  const Resources shared;  // other calls' memory is not this one's
  const Neighbors other(1000, 1000, shared);
  const KnnGraph graph = knn_graph(x.view(), {4, Metric::l2}, shared.with_device(Device::cpu()));
  EXPECT_EQ(graph.report().method, "exact");
  EXPECT_TRUE(graph.report().reached);
  EXPECT_EQ(graph.report().recall.value().recall, 1);
  EXPECT_EQ(graph.report().recall.value().standard_error, 0);
  EXPECT_GE(graph.report().peak_host_bytes, 500 * 4 * 12);
  EXPECT_LT(graph.report().peak_host_bytes, 1000 * 1000 * 12);
  const GraphReport filled = [&] {
    Neighbors out(500, 4, on_cpu());
    const GraphReport report = knn_graph(x.view(), out.view(), {4, Metric::l2}, on_cpu());
    expect_same_bytes(graph, std::move(out));
    return report;
  }();
  EXPECT_EQ(filled.method, "exact");
}

TEST(KnnGraph, RefusesWhatItCannotDo) {
  const auto x = make_floats(Shape::gaussian, 10, 3, 1);
  EXPECT_THROW(knn_graph(x.view(), {0, Metric::l2}, on_cpu()), InvalidArgument);
  EXPECT_THROW(knn_graph(x.view(), {INT64_MAX, Metric::l2}, on_cpu()), OutOfMemory);
  EXPECT_THROW(knn_graph(x.view(), {3, Metric::hamming}, on_cpu()), InvalidArgument);
  EXPECT_THROW(parse_graph_method("nope"), InvalidArgument);
  EXPECT_EQ(parse_graph_method("exact"), GraphMethod::exact);
}

}  // namespace
}  // namespace kith
