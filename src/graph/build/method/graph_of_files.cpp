#include <kith/graph_of_files.hpp>

#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/build/ggm/ggm_on_disk.hpp"
#include "graph/build/ggm/ggm_shards.hpp"
#include "graph/build/method/build_graph.hpp"
#include "graph/build/method/graph_on_ranks.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/handle/graph_folder.hpp"
#include "graph/handle/graph_output.hpp"
#include "io/disk.hpp"
#include "io/read_rows.hpp"
#include "io/row_slice.hpp"
#include "ranks/parts.hpp"
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
  FolderSink(const GraphOutputShape& shape, Metric metric, std::string folder, const GraphFolderForm& form,
             bool exact_follows = false)
      : shape_(shape), metric_(metric), folder_(std::move(folder)), form_(form), exact_follows_(exact_follows) {}

  bool is_there() const override { return holds_graph(folder_); }
  void begin() override {
    writer_.reset();
    writer_ = std::make_unique<GraphFolderWriter>(folder_, shape_.rows, shape_.k, form_);
  }
  void append(const NeighborsView& part) override { writer_->append(part); }
  void finish(const GraphReport& report) override {
    if (report.reached || !exact_follows_) writer_->finish(metric_, report);
    writer_.reset();
  }

 private:
  const GraphOutputShape shape_;
  const Metric metric_;
  const std::string folder_;
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

DiskWork disk_work(const std::string& folder, const GraphWork& work) {
  const std::string steps = work.folder.empty() ? folder + "/work" : work.folder;
  return {.disk = real_disk(), .folder = steps, .keep = work.keep, .part = work.part};
}

// The folder of work that is done, where nobody has named it; it stays where steps are kept, or parts are in it.
void remove_own_folder(const GraphWork& work, const std::string& folder) {
  std::error_code ignored;  // an empty folder harms nobody
  if (work.folder.empty()) std::filesystem::remove(folder, ignored);
}

// Few rows are all compared in memory, and one shard is no less than all.
bool is_merged_on_disk(const VectorFile& x, const KnnGraphParams& params) {
  const int64_t length = params.list_length.value_or(default_list_length(params.k));
  return params.method == GraphMethod::ggm && x.rows() - 1 > length && GgmShards(x.rows(), params).count > 1;
}

GraphReport ggm_to_folder(const VectorFile& x, const std::string& folder, const KnnGraphParams& params,
                          const GraphWork& work, const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  check_knn(RowsInfo(x), RowsInfo(x), {params.k, params.metric});
  const DiskWork kept = disk_work(folder, work);
  FolderSink sink({x.rows(), params.k}, params.metric, folder, work.form);
  const GraphReport report = measured(resources, [&](const Resources& counted) {
    return naming_files({{"x", x}}, [&] { return merge_on_disk(ggm_work(x, params), kept, sink, counted); });
  });
  remove_own_folder(work, kept.folder);
  return report;
}

// By cells, or nothing but the method where these rows turned out to want another.
GraphReport cells_to_folder(const VectorFile& x, const std::string& folder, const DiskCells& cells,
                            const KnnGraphParams& params, const GraphWork& work, const Resources& resources) {
  GraphMethod method = GraphMethod::cells;
  DiskWork kept = disk_work(folder, work);
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
  FolderSink sink({x.rows(), params.k}, params.metric, folder, work.form,
                  cells.choice && !cells.choice->exact_is_refused());
  GraphReport report = measured(resources.with_device(cells.device), [&](const Resources& counted) {
    return naming_files({{"x", x}}, [&] {
      return cells_on_disk(x, cells.wish, params.check_finite, kept, sink, counted).value_or(GraphReport());
    });
  });
  remove_own_folder(work, kept.folder);
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

// Cells over several devices: they share the steps of the work folder as parts of one process.
bool is_built_on_devices(const VectorFile& x, const KnnGraphParams& params, const Resources& resources) {
  return is_shared(resources) && params.method == GraphMethod::cells && params.recall < 1 && x.rows() - 1 > params.k;
}

GraphReport cells_on_devices(const VectorFile& x, const std::string& folder, const KnnGraphParams& params,
                             const GraphWork& work, const Resources& resources) {
  GraphReport report;
  run_parts(resources, [&](Communicator& ranks, const Resources& part) {
    GraphReport own = graph_on_ranks(ranks, x, folder, params, work, part);
    if (ranks.rank() == 0) report = std::move(own);
  });
  return report;
}

// Parts work from disk, whatever the limit: all of them must go the same way, which `automatic` does not promise.
void check_work_part(const VectorFile& x, const KnnGraphParams& params, const WorkPart& part) {
  part.validate();
  if (part.alone() && !part.wait) throw InvalidArgument("wait = false is for a part of the work; name one, as 1/3");
  if (part.alone()) return;
  if (params.method != GraphMethod::cells || params.recall == 1) {
    throw Unsupported(fmt::format("part {}/{}: graphs by the method cells, with a recall below 1, are built in parts; "
                                  "name that method, or leave the part out",
                                  part.number, part.count));
  }
  if (x.rows() - 1 <= params.k) {
    throw Unsupported(fmt::format("part {}/{}: the graph of {} rows with k = {} is not built from disk; leave the part out",
                                  part.number, part.count, x.rows(), params.k));
  }
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
  check_work_part(x, params, work.part);
  if (work.part.alone() && is_built_on_devices(x, params, resources)) {
    return cells_on_devices(x, folder, params, work, resources);
  }
  if (!work.part.alone()) {
    const DiskCells cells{graph_device(RowsInfo(x), params, resources), {}, cells_wish(x.rows(), params)};
    return graph_from_disk(x, folder, cells, params, work, resources);
  }
  const Footprint needed = needed_in_memory(x, params, resources);
  const bool in_memory = has_room_for(needed, resources);
  if (!in_memory) {
    if (is_merged_on_disk(x, params)) return ggm_to_folder(x, folder, params, work, resources);
    if (const auto cells = cells_from_disk(x, params, needed, resources)) {
      return graph_from_disk(x, folder, *cells, params, work, resources);
    }
    if (is_exact(params)) return exact_to_folder(x, folder, params, work, resources);
  }
  const KnnGraph graph = knn_graph(x, params, resources);
  save_graph_folder(graph, folder, work.form, resources);
  return graph.report();
}

namespace {

void check_parts(const std::vector<GraphOfFile>& parts) {
  if (parts.empty()) throw InvalidArgument("no graphs to merge; give at least one");
  int64_t rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [graph, x] = parts[i];
    if (graph.rows() != x.rows()) {
      throw InvalidArgument(fmt::format("graph {} has {} rows, and '{}' has {}; give the vectors that it was built of", i + 1,
                                        graph.rows(), x.path(), x.rows()));
    }
    if (graph.k() != parts[0].graph.k() || graph.metric() != parts[0].graph.metric()) {
      throw InvalidArgument(fmt::format("graph 1 is of k = {} by {}, and graph {} of k = {} by {}; build all alike",
                                        parts[0].graph.k(), name_of(parts[0].graph.metric()), i + 1, graph.k(),
                                        name_of(graph.metric())));
    }
    if (x.cols() != parts[0].x.cols() || x.dtype() != parts[0].x.dtype()) {
      throw InvalidArgument(fmt::format("'{}' has {} columns of {}, and '{}' {} of {}; all sets must have the same",
                                        parts[0].x.path(), parts[0].x.cols(), name_of(parts[0].x.dtype()), x.path(),
                                        x.cols(), name_of(x.dtype())));
    }
    rows += x.rows();
  }
  check_graph_size(rows, parts[0].graph.k());
}

KnnGraph merge_in_memory(const std::vector<GraphOfFile>& parts, const GraphMergeParams& params,
                         const Resources& resources) {
  std::vector<MatrixBuffer> rows;
  std::vector<GraphPart> read;
  for (const auto& [graph, x] : parts) {
    if (only_counts(resources)) {
      const ReadMemory chunks = x.reserve_memory(resources);
      rows.emplace_back(x.dtype(), x.rows(), x.cols(), "the vectors", resources);
    } else {
      rows.push_back(read_rows(x, {}, x.dtype(), resources));
    }
    read.push_back({graph, rows.back().view()});
  }
  return merge_graphs(read, params, resources);
}

ShardWork merge_work(const std::vector<GraphOfFile>& parts, const GraphMergeParams& params, const Resources& resources) {
  ShardWork work;
  work.graphs.k = parts[0].graph.k();
  work.graphs.metric = parts[0].graph.metric();
  work.merges = params;
  WorkManifest& manifest = work.manifest;
  manifest.set("work", "a merge of graphs");
  manifest.set("k", work.graphs.k);
  manifest.set("metric", name_of(work.graphs.metric));
  for (size_t i = 0; i < parts.size(); ++i) {
    work.shards.push_back({slice_of(parts[i].x, 0, parts[i].x.rows()), parts[i].graph});
    put_source(parts[i].x, manifest, fmt::format(" of part {}", i + 1));
    const GraphHashes hashes = hash_graph(parts[i].graph, resources.with_progress({}));
    manifest.set(fmt::format("graph of part {}", i + 1), fmt::format("{:016x} {:016x}", hashes.ids, hashes.distances));
  }
  put_merge_params(params, manifest);
  const auto count = static_cast<int64_t>(parts.size());
  work.put_method = [params, count](GraphReport& report) {
    report.method = "merge";
    report.parameters = {{"recall", params.recall}, {"parts", count}};
  };
  return work;
}

}  // namespace

GraphReport merge_graphs_folder(const std::vector<GraphOfFile>& parts, const std::string& folder,
                                const GraphMergeParams& params, const GraphWork& work, const Resources& resources) {
  params.validate();
  check_parts(parts);
  if (!work.part.alone()) throw Unsupported("graphs are not merged in parts of the work; leave the part out");
  const auto merge = [&](const Resources& used) { return merge_in_memory(parts, params, used); };
  const bool in_memory =
      parts.size() < 3 || !counts_memory(resources) || has_room_for(footprint_of_call(resources, merge), resources);
  if (in_memory) {
    const KnnGraph graph = within_limits("merging graphs", resources, merge);
    save_graph_folder(graph, folder, work.form, resources);
    return graph.report();
  }
  const DiskWork kept = disk_work(folder, work);
  int64_t rows = 0;
  for (const GraphOfFile& part : parts) rows += part.x.rows();
  FolderSink sink({rows, parts[0].graph.k()}, parts[0].graph.metric(), folder, work.form);
  const GraphReport report = measured(resources, [&](const Resources& counted) {
    return merge_on_disk(merge_work(parts, params, counted), kept, sink, counted);
  });
  remove_own_folder(work, kept.folder);
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
