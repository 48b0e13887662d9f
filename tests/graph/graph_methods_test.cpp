#include <kith/error.hpp>
#include <kith/graph_recall.hpp>
#include <kith/knn_graph.hpp>

#include "exact/exact_check.hpp"
#include "graph/build/method/build_graph.hpp"
#include "graph/build/method/method_choice.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "reference/data.hpp"
#include "reference/data_kinds.hpp"
#include "reference/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using ::testing::HasSubstr;

KnnGraphParams by(GraphMethod method, int64_t k, Metric metric = Metric::l2) {
  KnnGraphParams params;
  params.k = k;
  params.metric = metric;
  params.method = method;
  return params;
}

void expect_same_graph(const KnnGraph& a, const KnnGraph& b) {
  ASSERT_EQ(a.rows(), b.rows());
  ASSERT_EQ(a.k(), b.k());
  const auto count = static_cast<size_t>(a.rows() * a.k());
  EXPECT_EQ(std::vector<int64_t>(a.ids(), a.ids() + count), std::vector<int64_t>(b.ids(), b.ids() + count));
  EXPECT_EQ(std::vector<float>(a.distances(), a.distances() + count),
            std::vector<float>(b.distances(), b.distances() + count));
}

TEST(GraphMethods, ReachTheRecallAskedForAndSayHow) {
  const auto x = make_floats(Shape::gaussian, 4000, 12, 3);
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
    const KnnGraph graph = knn_graph(x.view(), by(method, 10), on_cpu());
    graph.validate(on_cpu());
    const GraphReport& report = graph.report();
    EXPECT_EQ(report.method, name_of(method));
    EXPECT_TRUE(report.reached);
    ASSERT_TRUE(report.recall);
    EXPECT_GE(report.recall->recall, 0.99);
    EXPECT_EQ(report.recall->rows, 1000);
    EXPECT_FALSE(report.rounds.empty());
    EXPECT_GT(report.rounds.front().comparisons, 0);
    EXPECT_GT(report.peak_host_bytes, 4000 * 10 * 12);
    const GraphRecall measured = measure_recall(graph, x.view(), {.rows = 4000}, on_cpu());
    EXPECT_NEAR(measured.recall, report.recall->recall, 3 * report.recall->standard_error + 0.001);
  }
}

// As errors of a normal distribution are: of 40 at most one beyond three standard errors, and no bias.
TEST(GraphMethods, EstimatesErrAsTheirStandardErrorsSay) {
  const auto x = make_floats(Shape::gaussian, 3000, 10, 3);
  double sum = 0;
  double squares = 0;
  int beyond = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    KnnGraphParams params = by(GraphMethod::cells, 8);
    params.cells = 40;
    params.probes = 2;
    params.seed = seed;
    const KnnGraph graph = knn_graph(x.view(), params, on_cpu());
    const GraphRecall measured = measure_recall(graph, x.view(), {.rows = 3000}, on_cpu());
    const GraphRecall& told = *graph.report().recall;
    const double errors = (told.recall - measured.recall) / told.standard_error;
    sum += errors;
    squares += errors * errors;
    beyond += std::abs(errors) > 3 ? 1 : 0;
  }
  EXPECT_LE(beyond, 1);
  EXPECT_LT(std::abs(sum / 40), 0.5);
  EXPECT_LT(squares / 40, 2);
  EXPECT_GT(squares / 40, 0.4);
}

TEST(GraphMethods, GiveTheSameBytesForAnyThreadsAndLimit) {
  const auto x = make_floats(Shape::near_duplicates, reference::fewer_if_sanitized(3000, 1200), 20, 3);
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
    const KnnGraph one = knn_graph(x.view(), by(method, 10), on_cpu(1));
    expect_same_graph(one, knn_graph(x.view(), by(method, 10), on_cpu(5)));
    expect_same_graph(one, knn_graph(x.view(), by(method, 10), on_cpu(2, int64_t{200} << 20)));
  }
}

TEST(GraphMethods, TellTheLimitThatWouldDo) {
  const auto x = make_floats(Shape::gaussian, 5000, 20, 3);
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
    const KnnGraph whole = knn_graph(x.view(), by(method, 10), on_cpu());
    try {
      knn_graph(x.view(), by(method, 10), on_cpu(2, 700 << 10));
      FAIL() << "700 KiB were enough";
    } catch (const OutOfMemory& error) {
      EXPECT_THAT(error.what(), HasSubstr("would do"));
      expect_same_graph(whole, knn_graph(x.view(), by(method, 10), on_cpu(2, error.bytes_needed())));
    }
  }
}

TEST(GraphMethods, AreExactWhereAllOthersFitAList) {
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
    for (const int64_t rows : {0, 1, 2, 9, 10, 11}) {
      const auto x = make_floats(Shape::gaussian, rows, 5, 3);
      const KnnGraph graph = knn_graph(x.view(), by(method, 10), on_cpu());
      expect_same_graph(graph, knn_graph(x.view(), by(GraphMethod::exact, 10), on_cpu()));
      ASSERT_TRUE(graph.report().recall);
      EXPECT_EQ(graph.report().recall->recall, 1);
      EXPECT_EQ(graph.report().recall->standard_error, 0);
    }
  }
}

TEST(GraphMethods, TakeHardData) {
  int64_t number = 0;
  for (const Shape shape : reference::kAllShapes) {
    for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
      for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
        if (reference::left_to_plain(number++, 5)) continue;
        SCOPED_TRACE(::testing::Message() << shape << " " << name_of(metric) << " " << name_of(method));
        const auto x = make_floats(shape, 700, 9, 3);
        const KnnGraph graph = knn_graph(x.view(), by(method, 7, metric), on_cpu());
        graph.validate(on_cpu());
        // Ties and all: what is reported is what is there.
        const GraphRecall measured = measure_recall(graph, x.view(), {.rows = 700}, on_cpu());
        EXPECT_NEAR(measured.recall, graph.report().recall->recall, 1e-9);
        EXPECT_EQ(graph.report().reached, measured.recall >= 0.99);
      }
    }
  }
}

TEST(GraphMethods, TakeAnyShape) {
  struct Case {
    int64_t rows, cols, k;
  };
  for (const Case& shape : {Case{400, 1, 3}, {300, 2048, 5}, {150, 8001, 3}, {500, 8, 1}, {500, 8, 33}, {64, 4, 3},
                            {65, 4, 3}, {66, 4, 3}, {128, 4, 3}, {129, 4, 3}, {640, 4, 5}}) {
    for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
      SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << " k " << shape.k);
      const auto x = make_floats(Shape::gaussian, shape.rows, shape.cols, 3);
      KnnGraphParams params = by(method, shape.k);
      params.recall = 0.9;
      const KnnGraph graph = knn_graph(x.view(), params, on_cpu());
      graph.validate(on_cpu());
      EXPECT_EQ(graph.report().reached, graph.report().recall->recall >= 0.9);
    }
  }
}

TEST(SlowGraphMethods, TakeManyNeighbours) {
  const auto x = make_floats(Shape::gaussian, 4000, 6, 3);
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
    const KnnGraph graph = knn_graph(x.view(), by(method, 1000), on_cpu());
    graph.validate(on_cpu());
    EXPECT_GE(graph.report().recall->recall, 0.9);
  }
}

TEST(GraphMethods, DescendByEveryMetric) {
  const auto x = reference::without_sign(make_floats(Shape::gaussian, 1200, 8, 3));
  for (const Metric metric : {Metric::l1, Metric::linf, Metric::chi_square, Metric::sqeuclidean}) {
    for (const GraphStart start : {GraphStart::random, GraphStart::cells}) {
      KnnGraphParams params = by(GraphMethod::nn_descent, 8, metric);
      params.start = start;
      const KnnGraph graph = knn_graph(x.view(), params, on_cpu());
      graph.validate(on_cpu());
      EXPECT_TRUE(graph.report().reached) << name_of(metric) << " " << name_of(start);
    }
  }
  const auto bytes = reference::make_bytes(1200, 8, 3, 15);
  const KnnGraph bits = knn_graph(bytes.view(), by(GraphMethod::nn_descent, 8, Metric::hamming), on_cpu());
  bits.validate(on_cpu());
  EXPECT_GE(bits.report().recall->recall, 0.9);
}

TEST(GraphMethods, JoinPartsThatNoEdgeJoins) {
  auto x = make_floats(Shape::gaussian, 1000, 6, 3);
  for (int64_t i = 500; i < 1000; ++i) x.row(i)[0] += 1e6f;  // two islands
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
    const KnnGraph graph = knn_graph(x.view(), by(method, 9), on_cpu());
    EXPECT_GE(graph.report().recall->recall, 0.99);
    for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(graph.ids(i)[0] < 500, i < 500);
  }
}

TEST(GraphMethods, WarnWhereTheRecallIsMissed) {
  const auto x = make_floats(Shape::gaussian, 2000, 40, 3);
  std::vector<std::string> warnings;
  const Resources resources = on_cpu().with_log([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warnings.emplace_back(text);
  });
  KnnGraphParams params = by(GraphMethod::cells, 10);
  params.cells = 50;
  params.probes = 2;
  const KnnGraph graph = knn_graph(x.view(), params, resources);
  EXPECT_FALSE(graph.report().reached);
  EXPECT_LT(graph.report().recall->recall, 0.99);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("0.99"));
}

TEST(GraphMethods, RefuseWhatMakesNoSense) {
  const auto x = make_floats(Shape::gaussian, 300, 4, 3);
  const auto refused = [&](const auto& edit, const std::string& text) {
    KnnGraphParams params = by(GraphMethod::cells, 5);
    edit(params);
    try {
      knn_graph(x.view(), params, on_cpu());
      FAIL() << text;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  };
  refused([](auto& p) { p.recall = 0; }, "recall = 0");
  refused([](auto& p) { p.recall = 1.5; }, "recall = 1.5");
  refused([](auto& p) { p.recall = std::numeric_limits<double>::quiet_NaN(); }, "recall = nan");
  refused([](auto& p) { p.recall = 1; }, "method exact");
  refused([](auto& p) { p.cells = 0; }, "cells = 0");
  refused([](auto& p) { p.probes = 0; }, "probes = 0");
  refused([](auto& p) { p.samples = 3; }, "nn_descent");
  refused([](auto& p) { p.metric = Metric::l1; }, "nn_descent");
  const auto descend = [](KnnGraphParams& p) { p.method = GraphMethod::nn_descent; };
  refused([&](auto& p) { descend(p), p.samples = 0; }, "samples = 0");
  refused([&](auto& p) { descend(p), p.list_length = 3; }, "list_length = 3");
  refused([&](auto& p) { descend(p), p.iterations = 0; }, "iterations = 0");
  refused([&](auto& p) { descend(p), p.delta = -1.0; }, "delta = -1");
  refused([&](auto& p) { descend(p), p.cells = 4; }, "cells is a parameter");
  refused([&](auto& p) { p.method = GraphMethod::automatic, p.probes = 4; }, "probes is a parameter");
}

// As the caller knows them, whichever part of the work refuses them.
TEST(GraphMethods, NameTheRowsThatTheyRefuse) {
  const auto told = [](const MatrixView& x, GraphMethod method, Metric metric) -> std::string {
    try {
      knn_graph(x, by(method, 5, metric), on_cpu());
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  for (const int64_t rows : {6, 2000}) {  // all others fit a list, or not
    auto bad = make_floats(Shape::gaussian, rows, 8, 3);
    for (int64_t i = 0; i < rows * 8; ++i) bad.row(0)[i] = std::abs(bad.row(0)[i]);
    bad.row(4)[2] = std::numeric_limits<float>::quiet_NaN();
    for (const GraphMethod method :
         {GraphMethod::automatic, GraphMethod::exact, GraphMethod::cells, GraphMethod::nn_descent}) {
      SCOPED_TRACE(name_of(method));
      EXPECT_THAT(told(bad.view(), method, Metric::l2), HasSubstr("x row 4 holds a NaN"));
    }
    bad.row(4)[2] = -1;
    for (const GraphMethod method : {GraphMethod::automatic, GraphMethod::exact, GraphMethod::nn_descent}) {
      SCOPED_TRACE(name_of(method));
      EXPECT_THAT(told(bad.view(), method, Metric::chi_square), HasSubstr("x row 4 holds a value below zero"));
    }
  }
}

TEST(GraphMethods, CanBeCancelled) {
  const auto x = make_floats(Shape::gaussian, 20000, 16, 3);
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
    const CancelToken cancel;
    int64_t reports = 0;
    const Resources resources = on_cpu().with_cancel(cancel).with_progress([&](const Progress&) {
      if (++reports == 2) cancel.request();
    });
    EXPECT_THROW(knn_graph(x.view(), by(method, 10), resources), Cancelled);
  }
}

TEST(GraphMethods, TheFirstLimitThatIsNamedWillDo) {
  const auto x = make_floats(Shape::gaussian, 5000, 16, 3);
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::cells, GraphMethod::nn_descent}) {
    SCOPED_TRACE(name_of(method));
    KnnGraphParams params = by(method, 10);
    params.recall = method == GraphMethod::exact ? 1 : 0.9;
    ResourceOptions options;
    options.device = Device::cpu();
    options.threads = 2;
    options.host_memory_limit = 1;
    int64_t enough = 0;
    try {
      knn_graph(x.view(), params, Resources(options));
      FAIL() << "a limit of one byte held a graph";
    } catch (const OutOfMemory& error) {
      enough = error.bytes_needed();
    }
    options.host_memory_limit = enough;
    EXPECT_EQ(knn_graph(x.view(), params, Resources(options)).rows(), 5000);
  }
}

// Whichever step a limit refuses, and whatever that step would name: what is named will do, and not much less would.
TEST(GraphMethods, ALimitIsNamedForTheWholeCall) {
  const auto floats = make_floats(Shape::gaussian, 600, 8, 3);
  const auto many = make_floats(Shape::gaussian, 8000, 24, 4);
  const auto bytes = reference::make_bytes(1400, 3, 5);
  const auto ties = reference::make_kind("lattice", 6000, 3);
  struct Case {
    MatrixView x;
    KnnGraphParams params;
  };
  const Case cases[] = {{floats.view(), by(GraphMethod::cells, 20)},
                        {floats.view(), by(GraphMethod::cells, 20, Metric::inner_product)},
                        {floats.view(), by(GraphMethod::cells, 20, Metric::cosine)},
                        {many.view(), by(GraphMethod::cells, 15)},
                        {ties.view(), by(GraphMethod::cells, 10, Metric::inner_product)},
                        {bytes.view(), by(GraphMethod::nn_descent, 15, Metric::l1)}};
  for (const Case& one : cases) {
    SCOPED_TRACE(::testing::Message() << one.x.rows() << " rows, " << name_of(one.params.method) << " "
                                      << name_of(one.params.metric));
    const KnnGraph whole = knn_graph(one.x, one.params, on_cpu());
    const auto named = [&](int64_t limit) {
      try {
        (void)knn_graph(one.x, one.params, on_cpu(2, limit));
        return int64_t{0};
      } catch (const OutOfMemory& error) {
        EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("cluster")));
        return error.bytes_needed();
      }
    };
    const int64_t first = named(1);
    ASSERT_GT(first, 1);
    for (int64_t limit = 1000; limit < first; limit += 1 + first / reference::fewer_if_sanitized(17, 5)) {
      const int64_t later = named(limit);
      EXPECT_TRUE(later == first || (later == 0 && limit > first / 3)) << limit << ": " << later;
    }
    expect_same_graph(whole, knn_graph(one.x, one.params, on_cpu(2, first)));
    if (one.params.method == GraphMethod::cells) {
      EXPECT_GT(named(first * 2 / 3), 0);
    }
  }
}

TEST(MethodChoice, LooksAtTheRowsUnlessNothingCanBeSooner) {
  const auto first = [](const GraphProblem& problem) { return first_method(problem, DeviceKind::cpu); };
  EXPECT_EQ(first({1000, 128, 15, Metric::l2, 0.99}), GraphMethod::exact);
  EXPECT_EQ(first({10000000, 128, 15, Metric::l2, 1}), GraphMethod::exact);
  EXPECT_EQ(first({20000, 4, 15, Metric::l2, 0.99}), GraphMethod::cells);
  EXPECT_EQ(first({100000, 128, 15, Metric::l2, 0.99}), GraphMethod::cells);
  EXPECT_EQ(first({1000000, 128, 15, Metric::cosine, 0.99}), GraphMethod::cells);
  EXPECT_EQ(first({1000000, 128, 15, Metric::chi_square, 0.99}), GraphMethod::nn_descent);
  EXPECT_EQ(first({1000000, 64, 15, Metric::hamming, 0.99}), GraphMethod::nn_descent);
}

GraphCosts likely_costs(const GraphProblem& problem, DeviceKind device = DeviceKind::cpu) {
  return predict_graph_costs(problem, likely_work(problem), device);
}

TEST(MethodChoice, CostsGrowWithTheWork) {
  for (const Metric metric : {Metric::l2, Metric::l1}) {
    for (int64_t rows = 1000; rows < 100000000; rows *= 3) {
      const GraphCosts here = likely_costs({rows, 128, 15, metric, 0.99});
      const GraphCosts more = likely_costs({rows * 2, 128, 15, metric, 0.99});
      EXPECT_LT(here.exact, more.exact);
      EXPECT_LT(here.nn_descent, more.nn_descent);
      EXPECT_TRUE(metric == Metric::l2 ? here.cells < more.cells : std::isinf(here.cells));
    }
  }
  EXPECT_LT(likely_costs({1000000, 128, 15, Metric::l2, 0.9}).cells,
            likely_costs({1000000, 128, 15, Metric::l2, 0.999}).cells);
}

TEST(MethodChoice, OnAGpuTakesWhatWasMeasuredToBeSooner) {
  const auto chosen = [](int64_t rows, int64_t k, Metric metric) {
    const GraphProblem problem{rows, 128, k, metric, 0.99};
    return choose_graph_method(problem, likely_work(problem), false, DeviceKind::cuda);
  };
  EXPECT_EQ(chosen(20000, 10, Metric::l2), GraphMethod::exact);
  EXPECT_EQ(chosen(5000, 15, Metric::chi_square), GraphMethod::exact);
  EXPECT_EQ(chosen(100000, 15, Metric::chi_square), GraphMethod::nn_descent);  // 1.5 s against 2.4
  EXPECT_EQ(chosen(100000, 10, Metric::l2), GraphMethod::exact);
  EXPECT_EQ(chosen(400000, 10, Metric::l2), GraphMethod::cells);
  EXPECT_EQ(chosen(10000000, 10, Metric::cosine), GraphMethod::cells);
  EXPECT_EQ(chosen(20000, 10, Metric::l1), GraphMethod::exact);
  EXPECT_EQ(chosen(1000000, 10, Metric::l1), GraphMethod::nn_descent);
  EXPECT_EQ(chosen(1000000, 1000, Metric::l1), GraphMethod::exact);  // with such long lists
  // On an H200: 9.7 and 610 ms exact; by cells 29 ms for 400,000 rows of SIFT, 2.35 s for 10 million of a manifold.
  EXPECT_NEAR(likely_costs({100000, 128, 10, Metric::l2, 0.99}, DeviceKind::cuda).exact, 0.0097, 0.002);
  EXPECT_NEAR(likely_costs({1000000, 128, 10, Metric::l2, 0.99}, DeviceKind::cuda).exact, 0.61, 0.06);
  EXPECT_NEAR(likely_costs({400000, 128, 10, Metric::l2, 0.99}, DeviceKind::cuda).cells, 0.029, 0.008);
}

TEST(MethodChoice, FollowsFromTheWorkOfTheRows) {
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    const GraphProblem problem{1000000, 128, 15, Metric::l2, 0.99};
    EXPECT_EQ(choose_graph_method(problem, balanced_work(problem, 30), false, device), GraphMethod::cells);
    EXPECT_EQ(choose_graph_method(problem, balanced_work(problem, 1900), false, device), GraphMethod::exact);
  }
  const GraphProblem problem{1000000, 128, 15, Metric::l2, 0.99};
  EXPECT_EQ(choose_graph_method(problem, {100, 0.99e12}, false, DeviceKind::cpu), GraphMethod::exact);  // of huge cells
  EXPECT_EQ(choose_graph_method(problem, balanced_work(problem, 1000), true, DeviceKind::cpu), GraphMethod::nn_descent);
  EXPECT_EQ(choose_graph_method(problem, balanced_work(problem, 1000), false, DeviceKind::cpu), GraphMethod::cells);
}

TEST(MethodChoice, RefusesTooManyPairsByTheirCount) {
  const auto refuses = [](int64_t rows, int64_t cols, DeviceKind device) {
    const GraphProblem problem{rows, cols, 15, Metric::l2, 0.99};
    return is_refused(problem, problem.pairs(), device);
  };
  EXPECT_FALSE(refuses(1000000, 128, DeviceKind::cpu));
  EXPECT_TRUE(refuses(1000000, 256, DeviceKind::cpu));
  EXPECT_FALSE(refuses(10000000, 128, DeviceKind::cuda));
  EXPECT_TRUE(refuses(20000000, 128, DeviceKind::cuda));
  const GraphProblem large{100000000, 128, 15, Metric::l2, 0.99};
  EXPECT_EQ(choose_graph_method(large, balanced_work(large, 100), false, DeviceKind::cuda), GraphMethod::cells);
  EXPECT_EQ(choose_graph_method(large, balanced_work(large, 50000), false, DeviceKind::cuda), GraphMethod::nn_descent);
}

TEST(MethodChoice, ProbesGoOnWhileExactIsNotSooner) {
  const GraphProblem problem{1000000, 128, 10, Metric::l2, 0.99};
  const int64_t cells = default_cells(1000000, 10);
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    const int64_t many = affordable_probes(problem, cells, device);
    EXPECT_GT(many, 300);
    EXPECT_LT(many, cells);
    const auto costs = [&](int64_t probes) {
      return predict_graph_costs(problem, balanced_work(problem, static_cast<double>(probes)), device);
    };
    EXPECT_LE(costs(many).cells, costs(many).exact);
    EXPECT_GT(costs(many + 1).cells, costs(many + 1).exact);
  }
  EXPECT_LE(affordable_probes({20000, 128, 10, Metric::l2, 0.99}, 40, DeviceKind::cuda), 40);
}

TEST(MethodChoice, ParametersFollowFromTheProblem) {
  EXPECT_EQ(default_cells(100, 15), 1);
  EXPECT_EQ(default_cells(1000000, 15), 2000);
  EXPECT_EQ(default_cells(1000000, 1000), 500);
  EXPECT_EQ(default_cells(100000000, 10), 66666);
  EXPECT_NEAR(static_cast<double>(default_cells(1000000000, 10)), 167459, 1);  // of twelve times as many rows
  EXPECT_EQ(default_list_length(15), 64);
  EXPECT_GE(default_list_length(1000), 1000);
  EXPECT_EQ(default_samples(64), 32);
}

TEST(MethodChoice, AutoKeepsItsWordOnEveryKindOfData) {
  for (const auto& [name, metric] : reference::data_kinds()) {
    SCOPED_TRACE(name);
    const auto x = reference::make_kind(name, reference::fewer_if_sanitized(8000, 7000), 3);
    KnnGraphParams params;
    params.k = 10;
    params.metric = metric;
    const KnnGraph graph = knn_graph(x.view(), params, on_cpu());
    EXPECT_TRUE(graph.report().reached);
    EXPECT_GE(graph.report().recall->recall, 0.99);
    EXPECT_GE(measure_recall(graph, x.view(), {.rows = 500, .seed = 77}, on_cpu()).recall, 0.985);
  }
}

// Sixty columns, where nothing is near anything: exact search is sooner, and the report says why.
TEST(MethodChoice, AutoGoesStraightToExactWhereCellsWouldCompareMost) {
  const auto x = make_floats(Shape::gaussian, 9000, 60, 3);
  KnnGraphParams params;
  params.k = 10;
  const GraphReport report = knn_graph(x.view(), params, on_cpu()).report();
  EXPECT_EQ(report.method, "exact");
  ASSERT_TRUE(report.forecast);
  EXPECT_GT(report.forecast->comparisons, 9000 * 9000 / 2);
  EXPECT_TRUE(report.rounds.empty());
}

// Rows of which exact search is refused: what is found is returned, and a warning says so.
TEST(MethodChoice, AutoSaysWhereItMissesTheRecall) {
  const auto x = make_floats(Shape::gaussian, 20000, 128, 3);
  KnnGraphParams params;
  params.k = 10;
  Neighbors found(20000, 10, on_cpu());
  std::vector<std::string> warnings;
  const Resources resources = on_cpu().with_log([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warnings.emplace_back(text);
  });
  const GraphReport report = build_graph(x.view(), found.view(), params, resources, {.cpu_products = 1e9});
  EXPECT_EQ(report.method, "nn_descent");
  EXPECT_FALSE(report.reached);
  EXPECT_LT(report.recall->recall, 0.99);
  ASSERT_TRUE(report.forecast);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("0.99"));
  EXPECT_THAT(warnings[0], HasSubstr("use exact"));
  for (int64_t i = 0; i < 20000; ++i) EXPECT_GE(found.ids(i)[9], 0);
}

// Cells that need fewer pairs than are refused reach it, whatever rounds would take.
TEST(MethodChoice, CellsKeepTheirWordWhereExactIsRefused) {
  const auto x = reference::make_kind("low_rank_24", 9000, 3);
  KnnGraphParams params;
  params.k = 10;
  Neighbors found(9000, 10, on_cpu());
  const GraphReport report = build_graph(x.view(), found.view(), params, on_cpu(), {.cpu_products = 1e9});
  EXPECT_EQ(report.method, "cells");
  EXPECT_TRUE(report.reached);
}

TEST(MethodChoice, ManyTiesMakeCellsSlower) {
  const GraphProblem problem{300000, 128, 15, Metric::l2, 0.99};
  CellsWork work = balanced_work(problem, 1);
  EXPECT_EQ(choose_graph_method(problem, work, false, DeviceKind::cuda), GraphMethod::cells);
  work.ties = 300.0 * 300000;
  EXPECT_EQ(choose_graph_method(problem, work, false, DeviceKind::cuda), GraphMethod::exact);
}

// So that no cells need be learned to know it.
TEST(MethodChoice, WhatIsSoonerThanOneProbeIsSoonerThanMore) {
  int sooner = 0;
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    for (const int64_t rows : {3000, 30000, 300000, 3000000}) {
      for (const double blur : {0.0, 0.5, 0.9, 1.0}) {
        for (const double ties : {0.0, 100.0}) {
          const GraphProblem problem{rows, 128, 15, Metric::l2, 0.99};
          const auto chosen = [&](double probes, bool descends) {
            CellsWork work = balanced_work(problem, probes);
            work.blur = blur;
            work.ties = ties * static_cast<double>(rows);
            return choose_graph_method(problem, work, descends, device);
          };
          if (chosen(1, true) != GraphMethod::exact) continue;
          ++sooner;
          for (const double probes : {1.0, 2.0, 30.0}) {
            EXPECT_EQ(chosen(probes, true), GraphMethod::exact) << rows << " rows, " << probes << " probes";
            EXPECT_EQ(chosen(probes, false), GraphMethod::exact) << rows << " rows, " << probes << " probes";
          }
        }
      }
    }
  }
  EXPECT_GT(sooner, 4);
}

TEST(MethodChoice, AReportSaysWhatWasForeseenAndWhatItTook) {
  const auto x = reference::make_kind("low_rank_24", 9000, 3);
  KnnGraphParams params;
  params.k = 10;
  const GraphReport report = knn_graph(x.view(), params, on_cpu()).report();
  EXPECT_EQ(report.method, "cells");
  ASSERT_TRUE(report.forecast);
  int64_t comparisons = 0;
  for (const GraphRound& round : report.rounds) comparisons += round.comparisons;
  EXPECT_EQ(report.forecast->comparisons, comparisons);
}

}  // namespace
}  // namespace kith
