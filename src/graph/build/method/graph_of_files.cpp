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

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
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

// Exact search, to a folder.
GraphReport exact_to_folder(const VectorFile& x, const std::string& folder, const KnnGraphParams& params,
                            const GraphWork& work, const Resources& resources) {
  GraphFolderWriter writer(folder, x.rows(), params.k, work.form);
  GraphReport report = measured(resources, [&](const Resources& counted) {
    write_exact(x, writer, params, counted);
    GraphReport exact;
    exact.method = name_of(GraphMethod::exact);
    exact.recall = exact_recall(x.rows());
    return exact;
  });
  writer.finish(params.metric, report);
  return report;
}

class FolderSink final : public GraphSink {
 public:
  // `exact_follows` where the recall is missed: then nothing is left of this graph.
  FolderSink(const VectorFile& x, std::string folder, const KnnGraphParams& params, const GraphFolderForm& form,
             bool exact_follows)
      : x_(x), folder_(std::move(folder)), params_(params), form_(form), exact_follows_(exact_follows) {}

  void begin() override {
    writer_.reset();
    writer_ = std::make_unique<GraphFolderWriter>(folder_, x_.rows(), params_.k, form_);
  }
  void append(const NeighborsView& part) override { writer_->append(part); }
  void finish(const GraphReport& report) override {
    if (report.reached || !exact_follows_) writer_->finish(params_.metric, report);
    writer_.reset();
  }

 private:
  const VectorFile& x_;
  const std::string folder_;
  const KnnGraphParams& params_;
  const GraphFolderForm form_;
  const bool exact_follows_;
  std::unique_ptr<GraphFolderWriter> writer_;
};

// Cells from disk that were asked for, or that may turn out to be soonest.
struct DiskCells {
  Device device;
  std::optional<SoonestMethod> choice;
  CellsWish wish;
};

// None where memory alone will do: another method, or so few rows that cells from disk would need more.
std::optional<DiskCells> cells_from_disk(const VectorFile& x, const KnnGraphParams& params, const Footprint& in_memory,
                                         const Resources& resources) {
  const bool left_to_us = params.method == GraphMethod::automatic;
  if (!left_to_us && params.method != GraphMethod::cells) return std::nullopt;
  if (x.rows() - 1 <= params.k || params.recall == 1) return std::nullopt;
  const GraphProblem problem{x.rows(), x.cols(), params.k, params.metric, params.recall};
  DiskCells cells{graph_device(RowsInfo(x), params, resources), {}, cells_wish(x.rows(), params)};
  if (left_to_us) {
    if (first_method(problem, cells.device.kind) != GraphMethod::cells) return std::nullopt;
    cells.choice.emplace(problem, params, cells.device.kind);
    cells.wish = cells.choice->wish();
  }
  const Footprint from_disk = cells_on_disk_footprint(x, cells.wish, resources.with_device(cells.device));
  if (from_disk.host >= in_memory.host && from_disk.device >= in_memory.device) return std::nullopt;
  return cells;
}

// By cells, or nothing but the method where these rows turned out to want another.
GraphReport cells_to_folder(const VectorFile& x, const std::string& folder, const DiskCells& cells,
                            const KnnGraphParams& params, const GraphWork& work, const Resources& resources) {
  GraphMethod method = GraphMethod::cells;
  const bool own_folder = work.folder.empty();
  DiskWork kept{real_disk(), own_folder ? folder + "/work" : work.folder, work.keep};
  if (cells.choice) {
    kept.goes_on = [&](const ProbeForecast& forecast, std::optional<int64_t> pairs) {
      method = pairs ? cells.choice->after_cut(forecast, *pairs, 0) : cells.choice->before_cut(forecast, 0);
      if (pairs || method != GraphMethod::cells) {
        resources.log(LogLevel::info, fmt::format("graph of {} rows from disk: {} for a recall of {}; {} probes would "
                                                  "do by cells",
                                                  x.rows(), name_of(method), params.recall, forecast.needed));
      }
      return method == GraphMethod::cells;
    };
  }
  FolderSink sink(x, folder, params, work.form, cells.choice && !cells.choice->exact_is_refused());
  GraphReport report = measured(resources.with_device(cells.device), [&](const Resources& counted) {
    return naming_files({{"x", x}}, [&] {
      return cells_on_disk(x, cells.wish, params.check_finite, kept, sink, counted).value_or(GraphReport());
    });
  });
  if (own_folder && !(work.keep && method == GraphMethod::cells)) {
    std::error_code ignored;  // an empty folder harms nobody
    std::filesystem::remove(kept.folder, ignored);
  }
  report.method = name_of(method);
  return report;
}

// Where the rows and the graph do not fit in memory.
GraphReport graph_from_disk(const VectorFile& x, const std::string& folder, const DiskCells& cells,
                            const KnnGraphParams& params, const GraphWork& work, const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  check_knn(RowsInfo(x), RowsInfo(x), {params.k, params.metric});
  const GraphReport report = cells_to_folder(x, folder, cells, params, work, resources);
  const bool by_cells = report.method == name_of(GraphMethod::cells);
  const bool exact_follows = cells.choice && !cells.choice->exact_is_refused();
  if (by_cells && (report.reached || !exact_follows)) {
    warn_if_missed(report, params.recall, "allow more probes, or use exact", resources);
    return report;
  }
  if (by_cells || report.method == name_of(GraphMethod::exact)) return exact_to_folder(x, folder, params, work, resources);
  // Rounds need memory, which they name.
  const KnnGraph graph = knn_graph(x, params, resources);
  save_graph_folder(graph, folder, work.form, resources);
  return graph.report();
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
  if (!in_memory) {
    if (const auto cells = cells_from_disk(x, params, needed, resources)) {
      return graph_from_disk(x, folder, *cells, params, work, resources);
    }
    if (is_exact(params)) return exact_to_folder(x, folder, params, work, resources);
  }
  const KnnGraph graph = knn_graph(x, params, resources);
  save_graph_folder(graph, folder, work.form, resources);
  return graph.report();
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
