#include "limits/call_data.hpp"
#include "limits/public_calls.hpp"

#include <kith/graph_file.hpp>
#include <kith/graph_merge.hpp>
#include <kith/graph_recall.hpp>
#include <kith/knn_graph.hpp>
#include <kith/smooth_paths.hpp>
#include <kith/spanning_tree.hpp>
#include <kith/vector_transform.hpp>

#include "cuda/device_memory.hpp"

#include <fmt/format.h>

namespace kith::testing {
namespace {

constexpr int64_t kHalf = 750;

MatrixView first_half() { return base_rows().view().slice(0, kHalf); }
MatrixView second_half() { return base_rows().view().slice(kHalf, kHalf); }

const KnnGraph& graph_of_all() {
  static const KnnGraph graph = knn_graph(base_rows().view(), {.k = 6, .method = GraphMethod::exact});
  return graph;
}
const KnnGraph& graph_of_half(int half) {
  static const KnnGraph graphs[2] = {knn_graph(first_half(), {.k = 6, .method = GraphMethod::exact}),
                                     knn_graph(second_half(), {.k = 6, .method = GraphMethod::exact})};
  return graphs[half];
}

// All rows, in the memory of a GPU.
MatrixView gpu_rows() {
  const MatrixView rows = base_rows().view();
  static const auto memory = [&] {
    auto there = allocate_on_device(rows.rows() * rows.cols() * 4, "rows", 0, Resources());
    copy_to_device(rows, there.get(), 0, Resources());
    return there;
  }();
  return {memory.get(), DType::f32, {rows.rows(), rows.cols(), rows.cols()}, MemorySpace::cuda(0)};
}

}  // namespace

void add_calls_of_gpu_rows(std::vector<PublicCall>& calls) {
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
    calls.push_back({fmt::format("graph_{}_of_gpu_rows", name_of(method)), [=](const Resources& resources) {
                       (void)knn_graph(gpu_rows(), {.k = 6, .method = method}, resources);
                     }});
  }
  calls.push_back({"merge_graphs_of_gpu_rows", [](const Resources& resources) {
                     const MatrixView rows = gpu_rows();
                     (void)merge_graphs(graph_of_half(1), rows.slice(kHalf, kHalf), graph_of_half(0),
                                        rows.slice(0, kHalf), {}, resources);
                   }});
  calls.push_back({"extend_graph_of_gpu_rows", [](const Resources& resources) {
                     const MatrixView rows = gpu_rows();
                     (void)extend_graph(graph_of_half(0), rows.slice(0, kHalf), rows.slice(kHalf, kHalf), {},
                                        resources);
                   }});
  calls.push_back({"graph_recall_of_gpu_rows", [](const Resources& resources) {
                     (void)measure_recall(graph_of_all(), gpu_rows(), {}, resources);
                   }});
  calls.push_back({"train_PCA8_of_gpu_rows", [](const Resources& resources) {
                     VectorTransform({.steps = "PCA8"}).train(gpu_rows(), resources);
                   }});
  calls.push_back({"apply_PCA8_of_gpu_rows", [](const Resources& resources) {
                     static const VectorTransform trained = [] {
                       VectorTransform transform({.steps = "L2norm,PCA8"});
                       transform.train(base_rows().view());
                       return transform;
                     }();
                     std::vector<float> out(1500 * 8);
                     trained.apply(gpu_rows(), {out.data(), 1500, 8}, resources);
                   }});
  calls.push_back({"smooth_paths_of_gpu_graph", [](const Resources& resources) {
                     static const KnnGraph graph = graph_of_all().to(MemorySpace::cuda(0), Resources());
                     (void)SmoothPaths(graph, resources);
                   }});
  calls.push_back({"widths_on_a_gpu", [](const Resources& resources) {
                     static const SmoothPaths paths(graph_of_all(), Resources().with_device(Device::cuda(0)));
                     const std::vector<int64_t> pairs(20'000, 3);
                     std::vector<float> widths(10'000);
                     paths.widths(pairs.data(), 10'000, widths.data(), resources);
                   }});
}

PublicCall symmetric_of_gpu_graph() {
  return {"symmetric_of_gpu_graph", [](const Resources& resources) {
            static const KnnGraph graph = graph_of_all().to(MemorySpace::cuda(0), Resources());
            (void)graph.symmetric(resources);
          }};
}

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
