#include <kith/error.hpp>
#include <kith/graph_merge.hpp>
#include <kith/graph_recall.hpp>

#include "exact/exact_check.hpp"
#include "reference/data.hpp"
#include "reference/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using ::testing::HasSubstr;

KnnGraph exact(const MatrixView& x, int64_t k, Metric metric = Metric::l2) {
  KnnGraphParams params;
  params.k = k;
  params.metric = metric;
  params.method = GraphMethod::exact;
  return knn_graph(x, params, on_cpu());
}

std::vector<int64_t> ids_of(const KnnGraph& graph) { return {graph.ids(), graph.ids() + graph.rows() * graph.k()}; }

TEST(GraphMerge, JoinsTwoGraphsOfTheirOwnParts) {
  const auto x = make_floats(Shape::gaussian, 3000, 10, 3);
  int64_t number = 0;
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product, Metric::l1}) {
    for (const int64_t boundary : {1500, 2900}) {
      if (reference::left_to_plain(number++, 3)) continue;
      SCOPED_TRACE(::testing::Message() << name_of(metric) << " " << boundary);
      const MatrixView a = x.view().slice(0, boundary);
      const MatrixView b = x.view().slice(boundary, 3000 - boundary);
      const KnnGraph graph = merge_graphs(exact(a, 10, metric), a, exact(b, 10, metric), b, {}, on_cpu());
      graph.validate(on_cpu());
      EXPECT_EQ(graph.rows(), 3000);
      EXPECT_EQ(graph.report().method, "merge");
      EXPECT_TRUE(graph.report().reached);
      EXPECT_GE(measure_recall(graph, x.view(), {.rows = 3000}, on_cpu()).recall, 0.98);
    }
  }
}

TEST(GraphMerge, DoesNotDependOnThreadsOrOnWhereRowsLie) {
  const auto x = make_floats(Shape::gaussian, 1500, 8, 3);
  const MatrixView a = x.view().slice(0, 700);
  const MatrixView b = x.view().slice(700, 800);
  const std::vector<float> apart(x.row(700), x.row(700) + 800 * 8);
  const KnnGraph of_a = exact(a, 9);
  const KnnGraph of_b = exact(b, 9);
  const KnnGraph one = merge_graphs(of_a, a, of_b, b, {}, on_cpu(1));
  EXPECT_EQ(ids_of(one), ids_of(merge_graphs(of_a, a, of_b, b, {}, on_cpu(6))));
  EXPECT_EQ(ids_of(one), ids_of(merge_graphs(of_a, a, of_b, {apart.data(), 800, 8}, {}, on_cpu(2))));
}

// Lists are halved: what does not fit is set aside and comes back.
TEST(GraphMerge, LosesNothingThatTheGraphsHad) {
  auto x = make_floats(Shape::gaussian, 1200, 5, 3);
  for (int64_t i = 600; i < 1200; ++i) x.row(i)[0] += 1e5f;  // no neighbour lies across
  const MatrixView a = x.view().slice(0, 600);
  const MatrixView b = x.view().slice(600, 600);
  GraphMergeParams params;
  params.list_length = 40;
  params.iterations = 3;
  const KnnGraph graph = merge_graphs(exact(a, 40), a, exact(b, 40), b, params, on_cpu());
  EXPECT_EQ(ids_of(graph), ids_of(exact(x.view(), 40)));
  EXPECT_EQ(graph.report().recall->recall, 1);
}

TEST(GraphMerge, JoinsManyParts) {
  const auto x = make_floats(Shape::gaussian, 2400, 8, 3);
  std::vector<GraphPart> parts;
  for (int64_t first = 0; first < 2400; first += 600) {
    const MatrixView part = x.view().slice(first, 600);
    parts.push_back({exact(part, 8), part});
  }
  const KnnGraph graph = merge_graphs(parts, {}, on_cpu());
  ASSERT_TRUE(graph.report().recall);  // the least of a pair
  EXPECT_GE(graph.report().recall->recall, 0.95);
  graph.validate(on_cpu());
  EXPECT_GE(measure_recall(graph, x.view(), {.rows = 2400}, on_cpu()).recall, 0.97);
  EXPECT_EQ(ids_of(merge_graphs({parts[0]}, {}, on_cpu())), ids_of(parts[0].graph));
}

TEST(GraphMerge, ExtendsByFewAndByMany) {
  const auto x = make_floats(Shape::gaussian, 9000, 6, 3);
  const MatrixView old = x.view().slice(0, 3000);
  const KnnGraph graph = exact(old, 7);
  const KnnGraph few = extend_graph(graph, old, x.view().slice(3000, 5), {}, on_cpu());
  EXPECT_EQ(ids_of(few), ids_of(exact(x.view().slice(0, 3005), 7)));
  EXPECT_EQ(ids_of(extend_graph(graph, old, x.view().slice(3000, 0), {}, on_cpu())), ids_of(graph));
  const KnnGraph many = extend_graph(graph, old, x.view().slice(3000, 6000), {}, on_cpu());
  many.validate(on_cpu());
  EXPECT_GE(measure_recall(many, x.view(), {.rows = 2000}, on_cpu()).recall, 0.98);
}

TEST(GraphMerge, RefinesAPoorGraph) {
  const auto x = make_floats(Shape::gaussian, 2500, 8, 3);
  KnnGraphParams poor;
  poor.k = 10;
  poor.method = GraphMethod::cells;
  poor.cells = 40;
  poor.probes = 2;
  const KnnGraph before = knn_graph(x.view(), poor, on_cpu());
  ASSERT_LT(before.report().recall->recall, 0.9);
  const KnnGraph after = refine_graph(before, x.view(), {}, on_cpu());
  after.validate(on_cpu());
  EXPECT_TRUE(after.report().reached);
  EXPECT_GE(measure_recall(after, x.view(), {.rows = 2500}, on_cpu()).recall, 0.98);
}

// Lists filled up with random rows hold most of them, and joins met nobody new: rounds ended with a recall of 0.8.
TEST(GraphMerge, RefinesPaddedGraphsOfFewRowsExactly) {
  for (const int64_t rows : {66, 80, 103, 129}) {
    const auto x = make_floats(Shape::gaussian, rows, 8, 3);
    const KnnGraph graph = exact(x.view(), 15);
    Neighbors half(rows, 15, on_cpu());
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < 15; ++j) {
        half.view().ids[row * 15 + j] = j < 8 ? graph.ids(row)[j] : -1;
        half.view().distances[row * 15 + j] = j < 8 ? graph.distances(row)[j] : std::numeric_limits<float>::infinity();
      }
    }
    const KnnGraph refined = refine_graph(KnnGraph(std::move(half), Metric::l2, on_cpu()), x.view(), {}, on_cpu());
    EXPECT_EQ(ids_of(refined), ids_of(graph));
    EXPECT_EQ(refined.report().recall->recall, 1);
  }
}

TEST(GraphMerge, IsExactWhereAllOthersFitAList) {
  for (const int64_t rows : {2, 3, 40, 64}) {
    const auto x = make_floats(Shape::gaussian, rows, 4, 3);
    const MatrixView a = x.view().slice(0, rows / 2);
    const MatrixView b = x.view().slice(rows / 2, rows - rows / 2);
    const KnnGraph graph = merge_graphs(exact(a, 5), a, exact(b, 5), b, {}, on_cpu());
    EXPECT_EQ(ids_of(graph), ids_of(exact(x.view(), 5)));
    EXPECT_EQ(graph.report().recall->recall, 1);
  }
}

// A graph made elsewhere may tell distances that differ in their last digits.
TEST(GraphMerge, NobodyIsANeighbourTwiceWhereDistancesWereRoundedElsewhere) {
  const auto x = make_floats(Shape::gaussian, 600, 8, 3);
  std::vector<GraphPart> parts;
  for (int64_t i = 0; i < 3; ++i) {
    const MatrixView rows = x.view().slice(200 * i, 200);
    const KnnGraph graph = exact(rows, 6);
    Neighbors told(200, 6, on_cpu());
    const NeighborsView view = told.view();
    std::copy(graph.ids(), graph.ids() + 1200, view.ids);
    std::transform(graph.distances(), graph.distances() + 1200, view.distances, [](float d) { return d * 1.0001f; });
    parts.push_back({KnnGraph(std::move(told), Metric::l2, on_cpu()), rows});
  }
  merge_graphs(parts, {}, on_cpu()).validate(on_cpu());
}

TEST(GraphMerge, TakesInfiniteDistancesAndUncheckedRows) {
  auto x = make_floats(Shape::gaussian, 60, 4, 3);
  for (int64_t i = 0; i < 60 * 4; ++i) x.row(0)[i] *= 1e30f;
  const MatrixView a = x.view().slice(0, 30);
  const MatrixView b = x.view().slice(30, 30);
  const KnnGraph of_a = exact(a, 3, Metric::sqeuclidean);
  const KnnGraph of_b = exact(b, 3, Metric::sqeuclidean);
  EXPECT_EQ(merge_graphs(of_a, a, of_b, b, {}, on_cpu()).rows(), 60);

  auto y = make_floats(Shape::gaussian, 60, 4, 3);
  y.row(45)[1] = std::numeric_limits<float>::quiet_NaN();
  const MatrixView old = y.view().slice(0, 30);
  GraphMergeParams params;
  try {
    extend_graph(exact(old, 3), old, y.view().slice(30, 30), params, on_cpu());
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("new row 15 holds a NaN"));
  }
  params.check_finite = false;
  EXPECT_EQ(extend_graph(exact(old, 3), old, y.view().slice(30, 30), params, on_cpu()).rows(), 60);
}

// By the names of the arguments, counted from the first row of each.
TEST(GraphMerge, NamesTheRowsThatItRefuses) {
  const auto x = make_floats(Shape::gaussian, 300, 4, 3);
  const KnnGraph graph = exact(x.view(), 5);
  auto y = x;
  y.row(45)[1] = std::numeric_limits<float>::quiet_NaN();
  const auto told = [](const auto& work) -> std::string {
    try {
      work();
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(told([&] { refine_graph(graph, y.view(), {}, on_cpu()); }), HasSubstr("x row 45 holds a NaN"));
  EXPECT_THAT(told([&] { merge_graphs(graph, x.view(), graph, y.view(), {}, on_cpu()); }), HasSubstr("x2 row 45 holds a NaN"));
  EXPECT_THAT(told([&] { merge_graphs(graph, y.view(), graph, x.view(), {}, on_cpu()); }), HasSubstr("x1 row 45 holds a NaN"));
  EXPECT_THAT(told([&] { merge_graphs({{graph, x.view()}, {graph, x.view()}, {graph, y.view()}}, {}, on_cpu()); }),
              HasSubstr("x3 row 45 holds a NaN"));
  EXPECT_THAT(told([&] { extend_graph(graph, y.view(), x.view(), {}, on_cpu()); }), HasSubstr("x row 45 holds a NaN"));
}

// Who follows the error need not try again.
TEST(GraphMerge, ALimitThatIsTooSmallNamesOneThatWillDo) {
  const auto x = make_floats(Shape::gaussian, 1500, 8, 3);
  const MatrixView a = x.view().slice(0, 500);
  const MatrixView b = x.view().slice(500, 1000);
  const std::vector<float> apart(x.row(500), x.row(500) + 1000 * 8);
  const MatrixView elsewhere(apart.data(), 1000, 8);
  const KnnGraph of_a = exact(a, 8);
  const KnnGraph of_b = exact(b, 8);
  const KnnGraph of_all = exact(x.view(), 8);
  const std::vector<std::function<KnnGraph(const Resources&)>> calls = {
      [&](const Resources& r) { return merge_graphs(of_a, a, of_b, b, {}, r); },
      [&](const Resources& r) { return merge_graphs(of_a, a, of_b, elsewhere, {}, r); },
      [&](const Resources& r) { return merge_graphs({{of_a, a}, {of_b, b}, {of_a, a}}, {}, r); },
      [&](const Resources& r) { return extend_graph(of_a, a, b, {}, r); },
      [&](const Resources& r) { return refine_graph(of_all, x.view(), {}, r); },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(i);
    const auto with = [](int64_t bytes) {
      ResourceOptions options;
      options.device = Device::cpu();
      options.threads = 2;
      options.host_memory_limit = bytes;
      return Resources(options);
    };
    const KnnGraph expected = calls[i](on_cpu(2));
    for (const int64_t bytes : {int64_t{1000}, int64_t{150'000}}) {
      int64_t named = 0;
      try {
        calls[i](with(bytes));
      } catch (const OutOfMemory& error) {
        named = error.bytes_needed();
        EXPECT_THAT(error.what(), HasSubstr("would do"));
      }
      ASSERT_GT(named, bytes) << "it was enough";
      EXPECT_EQ(ids_of(expected), ids_of(calls[i](with(named))));
      EXPECT_LT(static_cast<double>(named), 1.1 * static_cast<double>(expected.report().peak_host_bytes));
    }
  }
}

// As those of a compressed index are.
TEST(GraphMerge, RefinesAGraphOfOtherDistancesAndDoesNotMergeIt) {
  const auto x = make_floats(Shape::gaussian, 800, 6, 3);
  const KnnGraph graph = exact(x.view(), 5);
  Neighbors told(800, 5, on_cpu());
  const NeighborsView view = told.view();
  std::copy(graph.ids(), graph.ids() + 4000, view.ids);
  std::transform(graph.distances(), graph.distances() + 4000, view.distances, [](float d) { return d * 1.5f; });
  const KnnGraph rough(std::move(told), Metric::l2, on_cpu());
  EXPECT_EQ(ids_of(refine_graph(rough, x.view(), {}, on_cpu())), ids_of(graph));
  try {
    merge_graphs(rough, x.view(), graph, x.view(), {}, on_cpu());
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("refine a graph whose distances are others"));
  }
  GraphMergeParams params;
  params.recall = 1;
  try {
    refine_graph(graph, x.view(), params, on_cpu());
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("0.999"));
  }
}

TEST(GraphMerge, RefusesGraphsWithoutNeighbours) {
  const auto x = make_floats(Shape::gaussian, 5, 4, 3);
  const KnnGraph none(Neighbors(5, 0, on_cpu()), Metric::l2, on_cpu());
  EXPECT_THROW(merge_graphs(none, x.view(), none, x.view(), {}, on_cpu()), InvalidArgument);
  EXPECT_THROW(refine_graph(none, x.view(), {}, on_cpu()), InvalidArgument);
}

TEST(GraphMerge, RefusesWhatDoesNotBelongTogether) {
  const auto x = make_floats(Shape::gaussian, 400, 6, 3);
  const auto other = make_floats(Shape::gaussian, 200, 6, 9);
  const auto wider = make_floats(Shape::gaussian, 200, 7, 3);
  const MatrixView a = x.view().slice(0, 200);
  const MatrixView b = x.view().slice(200, 200);
  const KnnGraph of_a = exact(a, 5);
  const auto refused = [&](const KnnGraph& graph, const MatrixView& rows, const std::string& text) {
    try {
      merge_graphs(of_a, a, graph, rows, {}, on_cpu());
      FAIL() << text;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  };
  refused(exact(b, 6), b, "k = 6");
  refused(exact(b, 5, Metric::l1), b, "l1");
  refused(exact(b, 5), other.view(), "built of");
  refused(exact(b, 5), x.view(), "400");
  refused(exact(wider.view(), 5), wider.view(), "7");
  GraphMergeParams params;
  params.recall = 1;
  EXPECT_THROW(merge_graphs(of_a, a, exact(b, 5), b, params, on_cpu()), InvalidArgument);
  params = {};
  params.samples = 0;
  EXPECT_THROW(refine_graph(of_a, a, params, on_cpu()), InvalidArgument);
  params = {};
  params.list_length = 4;
  EXPECT_THROW(refine_graph(of_a, a, params, on_cpu()), InvalidArgument);
  EXPECT_THROW(extend_graph(of_a, a, wider.view(), {}, on_cpu()), InvalidArgument);
}

}  // namespace
}  // namespace kith
