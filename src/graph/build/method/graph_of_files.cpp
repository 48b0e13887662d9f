#include <kith/graph_of_files.hpp>

#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/build/method/build_graph.hpp"
#include "graph/handle/graph_folder.hpp"
#include "graph/handle/graph_output.hpp"
#include "io/disk.hpp"
#include "io/read_rows.hpp"
#include "rows/naming_files.hpp"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

namespace kith {
namespace {

// build(rows, resources) with all rows of the files in memory.
template <typename Build>
auto with_rows(const VectorFile& x, const KnnGraphParams& params, const Resources& resources, const Build& build) {
  params.validate();
  check_search(RowsInfo(x), RowsInfo(x), params.metric);
  return within_limits("the graph", resources, [&](const Resources& used) {
    if (only_counts(used)) {
      const ReadMemory chunks = x.reserve_memory(used);
      const MatrixBuffer counted(x.dtype(), x.rows(), x.cols(), "the vectors", used);
      return build(counted.view(), used);
    }
    const MatrixBuffer rows = read_rows(x, {}, x.dtype(), used);
    return naming_files({{"x", x}}, [&] { return build(rows.view(), used); });
  });
}

bool is_exact(const KnnGraphParams& params) { return params.method == GraphMethod::exact || params.recall == 1; }

// What the graph needs at least where all rows are in memory; nothing where nobody counts.
Footprint needed_in_memory(const VectorFile& x, const KnnGraphParams& params, const Resources& resources) {
  if (!counts_memory(resources)) return {};
  const auto call = [&](const Resources& counting) { (void)knn_graph(x, params, counting); };
  return footprint_of_call(resources, call);
}

// Every row is searched among all, in pieces of the files, and what is found is written at once.
void write_exact(const VectorFile& x, GraphFolderWriter& writer, const KnnGraphParams& params,
                 const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  const SearchShape shape = check_knn(RowsInfo(x), RowsInfo(x), {params.k, params.metric});
  const SearchWish wish{
      .k = params.k, .without_self = true, .check_finite = params.check_finite, .results_in_memory = false};
  const auto search = [&](RowSource& queries, RowSource& base) {
    search_knn(
        shape, wish, {queries, base, RowFilter()}, [&](int64_t, const NeighborsView& part) { writer.append(part); },
        resources);
  };
  const auto least = [&] { return search_footprint(shape, wish, RowFilter(), resources); };
  naming_files({{"x", x}}, [&] {
    naming_rows("x", [&] { search_files(x, x, resources, least, search); });
  });
}

class FolderSink final : public GraphSink {
 public:
  FolderSink(const VectorFile& x, std::string folder, const KnnGraphParams& params)
      : x_(x), folder_(std::move(folder)), params_(params) {}

  void begin() override {
    writer_.reset();
    writer_ = std::make_unique<GraphFolderWriter>(folder_, x_.rows(), params_.k);
  }
  void append(const NeighborsView& part) override { writer_->append(part); }
  void finish(const GraphReport& report) override { writer_->finish(params_.metric, report); }

 private:
  const VectorFile& x_;
  const std::string folder_;
  const KnnGraphParams& params_;
  std::unique_ptr<GraphFolderWriter> writer_;
};

// Of few rows it would need more than in memory.
bool works_on_disk(const VectorFile& x, const KnnGraphParams& params, const Footprint& in_memory,
                   const Resources& resources) {
  if (params.method != GraphMethod::cells || x.rows() - 1 <= params.k) return false;
  const CellsWish wish = cells_wish(x.rows(), params);
  const Resources there = resources.with_device(Device::cpu());
  return has_cells_on_disk(wish) && cells_on_disk_footprint(x, wish, there).host < in_memory.host;
}

GraphReport cells_to_folder(const VectorFile& x, const std::string& folder, const KnnGraphParams& params,
                            const GraphWork& work, const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  check_knn(RowsInfo(x), RowsInfo(x), {params.k, params.metric});
  if (resources.device().kind == DeviceKind::cuda) {
    resources.log(LogLevel::warning, "graphs by cells from disk are built on the CPU so far; the GPU is not used");
  }
  const Resources there = resources.with_device(Device::cpu());
  const bool own_folder = work.folder.empty();
  const DiskWork kept{real_disk(), own_folder ? folder + "/work" : work.folder, work.keep};
  FolderSink sink(x, folder, params);
  const GraphReport report = measured(there, [&](const Resources& counted) {
    return naming_files({{"x", x}}, [&] {
      return cells_on_disk(x, cells_wish(x.rows(), params), params.check_finite, kept, sink, counted);
    });
  });
  if (own_folder && !work.keep) {
    std::error_code ignored;  // an empty folder harms nobody
    std::filesystem::remove(kept.folder, ignored);
  }
  warn_if_missed(report, params.recall, "allow more probes, or use exact", resources);
  return report;
}

}  // namespace

GraphReport knn_graph_folder(const VectorFile& x, const std::string& folder, const KnnGraphParams& params,
                             const Resources& resources) {
  return knn_graph_folder(x, folder, params, GraphWork(), resources);
}

GraphReport knn_graph_folder(const VectorFile& x, const std::string& folder, const KnnGraphParams& params,
                             const GraphWork& work, const Resources& resources) {
  params.validate();
  check_search(RowsInfo(x), RowsInfo(x), params.metric);
  const Footprint needed = needed_in_memory(x, params, resources);
  const bool in_memory = has_room_for(needed, resources);
  if (!in_memory && works_on_disk(x, params, needed, resources)) {
    return cells_to_folder(x, folder, params, work, resources);
  }
  if (!is_exact(params) || in_memory) {
    const KnnGraph graph = knn_graph(x, params, resources);
    save_graph_folder(graph, folder, resources);
    return graph.report();
  }
  GraphFolderWriter writer(folder, x.rows(), params.k);
  const GraphReport report = measured(resources, [&](const Resources& counted) {
    write_exact(x, writer, params, counted);
    GraphReport exact;
    exact.method = name_of(GraphMethod::exact);
    exact.recall = exact_recall(x.rows());
    return exact;
  });
  writer.finish(params.metric, report);
  return report;
}

KnnGraph knn_graph(const VectorFile& x, const KnnGraphParams& params, const Resources& resources) {
  return with_rows(x, params, resources,
                   [&](const MatrixView& rows, const Resources& used) { return knn_graph(rows, params, used); });
}

GraphReport knn_graph(const VectorFile& x, const NeighborsView& out, const KnnGraphParams& params,
                      const Resources& resources) {
  return with_rows(x, params, resources,
                   [&](const MatrixView& rows, const Resources& used) { return knn_graph(rows, out, params, used); });
}

}  // namespace kith
