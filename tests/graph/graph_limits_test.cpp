// Under a memory limit that is too small every call of graphs and paths names a limit: with that one it works at once,
// and one byte less is answered with the same limit.
#include <kith/graph_file.hpp>
#include <kith/graph_merge.hpp>
#include <kith/graph_recall.hpp>
#include <kith/smooth_paths.hpp>
#include <kith/spanning_tree.hpp>

#include "core/named_limit.hpp"
#include "exact/exact_check.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace kith {
namespace {

struct LimitedCall {
  std::string name;
  std::function<void(const Resources&)> make;
};

void PrintTo(const LimitedCall& call, std::ostream* out) { *out << call.name; }

const reference::Matrix<float>& rows_of_graphs() {
  static const auto rows = reference::make_floats(reference::Shape::gaussian, 1500, 20, 7);
  return rows;
}
MatrixView first_rows() { return rows_of_graphs().view().slice(0, 700); }
MatrixView last_rows() { return rows_of_graphs().view().slice(700, 800); }

KnnGraph made_graph(const MatrixView& x, Metric metric = Metric::l2) {
  return knn_graph(x, {.k = 8, .metric = metric, .method = GraphMethod::exact}, on_cpu());
}

// The limit that is named under another; 0 where the call works.
int64_t limit_named_under(int64_t limit, const LimitedCall& call) {
  try {
    call.make(on_cpu(2, limit));
    return 0;
  } catch (const NamedLimit& error) {
    EXPECT_EQ(error.which(), "host");
    return error.bytes_needed();
  }
}

std::vector<LimitedCall> limited_calls() {
  std::vector<LimitedCall> calls;
  const auto build = [&](const std::string& name, const KnnGraphParams& params) {
    calls.push_back({name, [=](const Resources& used) { (void)knn_graph(rows_of_graphs().view(), params, used); }});
  };
  build("exact", {.k = 8, .method = GraphMethod::exact});
  build("automatic", {.k = 8});
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
    build("cells_" + std::string(name_of(metric)), {.k = 8, .metric = metric, .method = GraphMethod::cells});
  }
  for (const Metric metric : {Metric::l2, Metric::l1, Metric::inner_product}) {
    build("nn_descent_" + std::string(name_of(metric)), {.k = 8, .metric = metric, .method = GraphMethod::nn_descent});
  }
  build("nn_descent_random", {.k = 8, .method = GraphMethod::nn_descent, .start = GraphStart::random});
  calls.push_back({"merge", [](const Resources& used) {
                     (void)merge_graphs(made_graph(first_rows()), first_rows(), made_graph(last_rows()), last_rows(),
                                        {}, used);
                   }});
  calls.push_back(
      {"merge_three", [](const Resources& used) {
         const MatrixView x[] = {first_rows().slice(0, 300), first_rows().slice(300, 400), last_rows()};
         (void)merge_graphs({{made_graph(x[0]), x[0]}, {made_graph(x[1]), x[1]}, {made_graph(x[2]), x[2]}}, {}, used);
       }});
  calls.push_back({"extend", [](const Resources& used) {
                     (void)extend_graph(made_graph(first_rows()), first_rows(), last_rows(), {}, used);
                   }});
  calls.push_back({"refine", [](const Resources& used) {
                     (void)refine_graph(made_graph(rows_of_graphs().view()), rows_of_graphs().view(), {}, used);
                   }});
  const auto of_graph = [&](const std::string& name,
                            const std::function<void(const KnnGraph&, const Resources&)>& use) {
    calls.push_back({name, [=](const Resources& used) { use(made_graph(rows_of_graphs().view()), used); }});
  };
  of_graph("csr", [](const KnnGraph& graph, const Resources& used) { (void)graph.to_csr(used); });
  of_graph("reversed", [](const KnnGraph& graph, const Resources& used) { (void)graph.reversed(used); });
  of_graph("symmetric", [](const KnnGraph& graph, const Resources& used) { (void)graph.symmetric(used); });
  of_graph("mutual", [](const KnnGraph& graph, const Resources& used) { (void)graph.mutual(used); });
  of_graph("in_degrees", [](const KnnGraph& graph, const Resources& used) { (void)graph.in_degrees(used); });
  of_graph("components", [](const KnnGraph& graph, const Resources& used) { (void)graph.components(used); });
  of_graph("umap", [](const KnnGraph& graph, const Resources& used) { (void)graph.to_umap(used); });
  of_graph("connectivities", [](const KnnGraph& graph, const Resources& used) { (void)graph.connectivities(used); });
  of_graph("recall", [](const KnnGraph& graph, const Resources& used) {
    (void)measure_recall(graph, rows_of_graphs().view(), {.rows = 200}, used);
  });
  of_graph("load", [](const KnnGraph& graph, const Resources& used) {
    const testing::TemporaryDirectory directory;
    save_graph(graph, directory.path("ids.npy"), directory.path("distances.npy"), on_cpu());
    (void)load_graph(directory.path("ids.npy"), directory.path("distances.npy"), Metric::l2, used);
  });
  of_graph("smooth_paths", [](const KnnGraph& graph, const Resources& used) { (void)SmoothPaths(graph, used); });
  of_graph("spanning_tree", [](const KnnGraph& graph, const Resources& used) {
    (void)spanning_tree(graph, {.weights = EdgeWeights::mutual_reachability, .unconnected = Unconnected::at_inf}, used);
  });
  of_graph("nearest_parts", [](const KnnGraph& graph, const Resources& used) {
    (void)spanning_tree(graph, rows_of_graphs().view(), {.unconnected = Unconnected::nearest}, used);
  });
  of_graph("labels", [](const KnnGraph& graph, const Resources& used) {
    (void)spanning_tree(graph, {.unconnected = Unconnected::at_inf}, on_cpu()).labels(1.0, used);
  });
  of_graph("linkage", [](const KnnGraph& graph, const Resources& used) {
    (void)spanning_tree(graph, {.unconnected = Unconnected::at_inf}, on_cpu()).single_linkage(used);
  });
  return calls;
}

class GraphLimits : public ::testing::TestWithParam<LimitedCall> {};

TEST_P(GraphLimits, TheNamedLimitWorksAndAByteLessNamesItAgain) {
  const int64_t named = limit_named_under(1, GetParam());
  ASSERT_GT(named, 1);
  EXPECT_EQ(limit_named_under(named / 2, GetParam()), named);
  EXPECT_EQ(limit_named_under(named - 1, GetParam()), named);
  EXPECT_EQ(limit_named_under(named, GetParam()), 0) << "the named limit of " << named << " bytes did not do";
}

INSTANTIATE_TEST_SUITE_P(Calls, GraphLimits, ::testing::ValuesIn(limited_calls()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kith
