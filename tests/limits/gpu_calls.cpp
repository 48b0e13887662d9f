// Calls whose rows, queries, graph or index lie in the memory of a GPU.
#include "limits/call_data.hpp"
#include "limits/graph_data.hpp"
#include "limits/public_calls.hpp"

#include <kith/graph_merge.hpp>
#include <kith/graph_recall.hpp>
#include <kith/index.hpp>
#include <kith/smooth_paths.hpp>
#include <kith/vector_transform.hpp>

#include "cuda/device_memory.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kith::testing {
namespace {

MatrixView on_gpu(const MatrixView& rows, std::shared_ptr<std::byte>& memory) {
  memory = allocate_on_device(rows.rows() * rows.cols() * 4, "rows", 0, Resources());
  copy_to_device(rows, memory.get(), 0, Resources());
  return {memory.get(), DType::f32, {rows.rows(), rows.cols(), rows.cols()}, MemorySpace::cuda(0)};
}

MatrixView gpu_rows() {
  static std::shared_ptr<std::byte> memory;
  static const MatrixView rows = on_gpu(base_rows().view(), memory);
  return rows;
}
MatrixView gpu_queries() {
  static std::shared_ptr<std::byte> memory;
  static const MatrixView rows = on_gpu(query_rows().view(), memory);
  return rows;
}

// An index that is made by the first call: there may be no GPU.
class IndexOnGpu {
 public:
  IndexOnGpu(std::string factory, Metric metric) : factory_(std::move(factory)), metric_(metric) {}

  Index trained() const {
    Index index(factory_, {.metric = metric_});
    index.train(base_rows().view());
    return index;
  }
  // Its rows were added in two parts.
  const Index& get() const {
    static std::map<std::string, Index> made;
    const std::string name = fmt::format("{} by {}", factory_, name_of(metric_));
    const auto found = made.find(name);
    if (found != made.end()) return found->second;
    Index index = trained();
    const Resources there = Resources().with_device(Device::cuda(0));
    index.add(gpu_rows().slice(0, 1490), Ownership::copy, there);
    index.add(gpu_rows().slice(1490, 10), Ownership::copy, there);
    return made.emplace(name, std::move(index)).first->second;
  }
  const std::string& factory() const { return factory_; }
  Metric metric() const { return metric_; }

 private:
  std::string factory_;
  Metric metric_;
};

void add_calls_of_an_index(const std::string& name, const IndexOnGpu& index, std::vector<PublicCall>& calls) {
  if (index.factory() != "Flat") {
    calls.push_back({name + "_train_of_gpu_rows", [=](const Resources& resources) {
                       Index(index.factory(), {.metric = index.metric()}).train(gpu_rows(), resources);
                     }});
  }
  calls.push_back({name + "_add_of_gpu_rows",
                   [=](const Resources& resources) { index.trained().add(gpu_rows(), Ownership::copy, resources); }});
  calls.push_back({name + "_search_by_gpu_queries",
                   [=](const Resources& resources) { (void)index.get().search(gpu_queries(), {.k = 5}, resources); }});
  calls.push_back({name + "_search_of_kept_rows", [=](const Resources& resources) {
                     std::vector<uint8_t> mask(1500, 1);
                     for (size_t i = 0; i < mask.size(); i += 2) mask[i] = 0;
                     const RowFilter kept = RowFilter::mask(mask.data(), 1500);
                     (void)index.get().search(query_rows().view(), {.k = 5, .filter = kept}, resources);
                   }});
  calls.push_back({name + "_of_a_gpu_reconstruct", [=](const Resources& resources) {
                     static const std::vector<int64_t> ids = {3, 5, 1495};
                     std::vector<float> out(3 * 24);
                     index.get().reconstruct({ids.data(), 3, {}}, {out.data(), 3, 24}, resources);
                   }});
  calls.push_back({name + "_of_a_gpu_save",
                   [=](const Resources& resources) { index.get().save(scratch_file(name + "_gpu.kith"), resources); }});
  calls.push_back({name + "_of_a_gpu_merge", [=](const Resources& resources) {
                     index.get().to(Device()).merge(index.get(), {.shift_ids = true}, resources);
                   }});
  calls.push_back({name + "_of_a_gpu_compact", [=](const Resources& resources) {
                     static const std::vector<int64_t> ids = {3, 5, 700};
                     Index copy = index.get().to(Device());
                     copy.remove({ids.data(), 3, {}});
                     copy.compact(resources);
                   }});
  calls.push_back({name + "_range_by_gpu_queries", [=](const Resources& resources) {
                     (void)index.get().range_search(gpu_queries(), {.radius = 1e-3f}, resources);
                   }});
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
  calls.push_back({"symmetric_of_gpu_graph", [](const Resources& resources) {
                     static const KnnGraph graph = graph_of_all().to(MemorySpace::cuda(0), Resources());
                     (void)graph.symmetric(resources);
                   }});
  add_calls_of_an_index("flat", {"Flat", Metric::l2}, calls);
  add_calls_of_an_index("ivf_sq8_cosine", {"IVF16,SQ8", Metric::cosine}, calls);
  add_calls_of_an_index("pca_ivf_pq", {"PCA16,IVF16,PQ4x4", Metric::l2}, calls);
  add_calls_of_an_index("lsq_refined", {"LSQ2x4,RFlat", Metric::l2}, calls);
}

}  // namespace kith::testing
