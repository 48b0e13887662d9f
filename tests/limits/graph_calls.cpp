#include "limits/call_data.hpp"
#include "limits/graph_data.hpp"
#include "limits/public_calls.hpp"

#include <kith/graph_file.hpp>
#include <kith/graph_merge.hpp>
#include <kith/graph_recall.hpp>
#include <kith/knn_graph.hpp>
#include <kith/smooth_paths.hpp>
#include <kith/spanning_tree.hpp>

#include <fmt/format.h>

namespace kith::testing {

void add_graph_builds(std::vector<PublicCall>& calls) {
  for (const GraphMethod method :
       {GraphMethod::automatic, GraphMethod::exact, GraphMethod::cells, GraphMethod::nn_descent}) {
    for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product, Metric::l1}) {
      if (method == GraphMethod::cells && metric == Metric::l1) continue;  // which has none
      calls.push_back({fmt::format("graph_{}_{}", name_of(method), name_of(metric)), [=](const Resources& resources) {
                         (void)knn_graph(base_rows().view(), {.k = 6, .metric = metric, .method = method}, resources);
                       }});
    }
  }
  calls.push_back({"merge_graphs", [](const Resources& resources) {
                     (void)merge_graphs(graph_of_half(0), first_half(), graph_of_half(1), second_half(), {}, resources);
                   }});
  calls.push_back({"extend_graph", [](const Resources& resources) {
                     (void)extend_graph(graph_of_half(0), first_half(), second_half(), {}, resources);
                   }});
  calls.push_back({"refine_graph", [](const Resources& resources) {
                     (void)refine_graph(graph_of_all(), base_rows().view(), {}, resources);
                   }});
  calls.push_back(
      {"merge_three_graphs", [](const Resources& resources) {
         (void)merge_graphs(
             {{graph_of_half(0), first_half()}, {graph_of_half(1), second_half()}, {graph_of_half(0), first_half()}},
             {}, resources);
       }});
}

void add_graph_calls(std::vector<PublicCall>& calls) {
  add_graph_builds(calls);
  calls.push_back({"graph_recall", [](const Resources& resources) {
                     (void)measure_recall(graph_of_all(), base_rows().view(), {}, resources);
                   }});
  calls.push_back(
      {"graph_f64", [](const Resources& resources) { (void)knn_graph(far_base_rows(), {.k = 6}, resources); }});
  calls.push_back({"refine_graph_f64", [](const Resources& resources) {
                     (void)refine_graph(graph_of_all(), far_base_rows(), {}, resources);
                   }});
  calls.push_back({"extend_graph_f64", [](const Resources& resources) {
                     static const MatrixView all = far_base_rows();
                     static const KnnGraph graph = knn_graph(all.slice(0, kHalf), {.k = 6});
                     (void)extend_graph(graph, all.slice(0, kHalf), all.slice(kHalf, kHalf), {}, resources);
                   }});
  calls.push_back({"graph_recall_f64", [](const Resources& resources) {
                     (void)measure_recall(graph_of_all(), far_base_rows(), {}, resources);
                   }});
  calls.push_back({"spanning_tree_f64", [](const Resources& resources) {
                     const SpanningTreeParams nearest{.unconnected = Unconnected::nearest};
                     (void)spanning_tree(graph_of_all(), far_base_rows(), nearest, resources);
                   }});
  calls.push_back({"csr", [](const Resources& resources) { (void)graph_of_all().to_csr(resources); }});
  calls.push_back({"symmetric", [](const Resources& resources) { (void)graph_of_all().symmetric(resources); }});
  calls.push_back({"mutual", [](const Resources& resources) { (void)graph_of_all().mutual(resources); }});
  calls.push_back({"reversed", [](const Resources& resources) { (void)graph_of_all().reversed(resources); }});
  calls.push_back({"components", [](const Resources& resources) { (void)graph_of_all().components(resources); }});
  calls.push_back({"in_degrees", [](const Resources& resources) { (void)graph_of_all().in_degrees(resources); }});
  calls.push_back({"umap", [](const Resources& resources) { (void)graph_of_all().to_umap(resources); }});
  calls.push_back(
      {"connectivities", [](const Resources& resources) { (void)graph_of_all().connectivities(resources); }});
  calls.push_back({"smooth_paths", [](const Resources& resources) { (void)SmoothPaths(graph_of_all(), resources); }});
  calls.push_back({"spanning_tree", [](const Resources& resources) {
                     (void)spanning_tree(graph_of_all(), SpanningTreeParams(), resources);
                   }});
}

}  // namespace kith::testing
