#include <kith/graph_of_files.hpp>
#include <kith/refused_row.hpp>

#include "core/within_limits.hpp"
#include "exact/search_checks.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/build/exact_on_disk/exact_on_disk.hpp"
#include "graph/build/ggm/ggm_on_disk.hpp"
#include "graph/build/ggm/ggm_shards.hpp"
#include "graph/build/ggm/shard_work.hpp"
#include "graph/build/method/build_graph.hpp"
#include "graph/build/method/folder_sink.hpp"
#include "graph/build/method/graph_on_ranks.hpp"
#include "graph/build/method/graph_steps.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/handle/graph_folder.hpp"
#include "graph/handle/graph_output.hpp"
#include "io/disk.hpp"
#include "io/read_rows.hpp"
#include "io/row_slice.hpp"
#include "ranks/parts.hpp"

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
    if (counts_only(used)) {
      const ReadMemory chunks = x.reserve_memory(used);
      const MatrixBuffer counted(x.dtype(), x.rows(), x.cols(), "the vectors", used);
      return build(counted.view(), used);
    }
    const MatrixBuffer rows = read_rows(x, {}, x.dtype(), used);
    return naming_files({{"x", x}}, [&] { return build(rows.view(), used); });
  });
}

// Whether it was requested, or `automatic` chooses it for this number of rows.
bool is_exact_from_disk(const VectorFile& x, const KnnGraphParams& params, const Resources& resources) {
  if (params.method == GraphMethod::exact || params.recall == 1) return true;
  if (params.method != GraphMethod::automatic) return false;
  const Device device = graph_device(RowsInfo(x), params, resources);
  return first_method({x.rows(), x.cols(), params.k, params.metric, params.recall}, device.kind) == GraphMethod::exact;
}

// The least memory of the graph if all rows are in memory; nothing without a memory limit.
Footprint needed_in_memory(const VectorFile& x, const KnnGraphParams& params, const Resources& resources) {
  if (!counts_memory(resources)) return {};
  const auto call = [&](const Resources& counting) { (void)knn_graph(x, params, counting); };
  return footprint_of_call(resources, call);
}

// Cells from disk that were asked for, or that may turn out to be soonest.
struct DiskCells {
  Device device;
  std::optional<SoonestMethod> choice;
  CellsParams params;
};

// None for another method, and where there are so few rows that cells from disk would need more than `in_memory`, if
// that is what they are for.
std::optional<DiskCells> cells_from_disk(const VectorFile& x, const KnnGraphParams& params,
                                         const std::optional<Footprint>& in_memory, const Resources& resources) {
  const bool left_to_us = params.method == GraphMethod::automatic;
  if (!left_to_us && params.method != GraphMethod::cells) return std::nullopt;
  if (x.rows() - 1 <= params.k || params.recall == 1) return std::nullopt;
  const GraphProblem problem{x.rows(), x.cols(), params.k, params.metric, params.recall};
  DiskCells cells{graph_device(RowsInfo(x), params, resources), {}, cells_params(x.rows(), params)};
  if (left_to_us) {
    if (first_method(problem, cells.device.kind) != GraphMethod::cells) return std::nullopt;
    cells.choice.emplace(problem, params, cells.device.kind);
    cells.params = cells.choice->params();
  }
  if (!in_memory) return cells;
  const Footprint from_disk = cells_on_disk_footprint(x, cells.params, resources.with_device(cells.device));
  if (from_disk.host >= in_memory->host && from_disk.device >= in_memory->device) return std::nullopt;
  return cells;
}

// Where the exact graph is made that follows cells from disk.
std::string ending_folder(const std::string& folder, const GraphWork& work) {
  return ending_steps_folder(steps_folder(folder, work));
}

// Where the graph is built in memory, though steps were to be kept.
void refuse_steps(const VectorFile& x, const std::string& folder, const KnnGraphParams& params, const GraphWork& work,
                  const Resources& resources) {
  const std::string steps = steps_folder(folder, work);
  if (WorkFolder::holds_work(real_disk(), steps)) {
    throw InvalidArgument(
        fmt::format("the folder '{}' holds work that was not ended, and this graph, by {}, is built without "
                    "it; give the parameters that it was begun with, or remove the folder",
                    steps, name_of(params.method)));
  }
  if (params.method == GraphMethod::nn_descent) {
    throw Unsupported(
        "nn_descent builds its graph in memory and keeps no steps; leave work and keep_work out, or name the "
        "method cells, ggm or exact");
  }
  resources.log(
      LogLevel::info,
      fmt::format("the graph of {} rows is built in memory at once: no steps are kept in '{}'", x.rows(), steps));
}

// Few rows are all compared in memory, and one shard is no less than all.
bool is_merged_on_disk(const VectorFile& x, const KnnGraphParams& params) {
  const int64_t length = params.list_length.value_or(default_list_length(params.k));
  return params.method == GraphMethod::ggm && x.rows() - 1 > length && GgmShards(x.rows(), params).count > 1;
}

// Exact search, to a folder. `ends`: after cells from disk, whose own work may be kept.
GraphReport exact_to_folder(const VectorFile& x, const std::string& folder, const KnnGraphParams& params,
                            const GraphWork& work, bool ends, const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  DiskWork kept = disk_work(folder, work);
  kept.exact_ends = ends;
  if (ends) kept.folder = ending_folder(folder, work);
  FolderSink sink({x.rows(), params.k}, params.metric, folder, work.form);
  const GraphReport report = measured(resources, [&](const Resources& counted) {
    return naming_files({{"x", x}}, [&] {
      return naming_rows("x", [&] { return exact_on_disk(x, params, kept, sink, counted); });
    });
  });
  remove_own_folder(ends ? GraphWork() : work, kept.folder);
  return report;
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
      return cells_on_disk(x, cells.params, params.check_finite, kept, sink, counted).value_or(GraphReport());
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
  if (by_cells || report.method == name_of(GraphMethod::exact)) {
    return exact_to_folder(x, folder, params, work, true, resources);
  }
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
    throw Unsupported(
        fmt::format("part {}/{}: the graph of {} rows with k = {} is not built from disk; leave the part out",
                    part.number, part.count, x.rows(), params.k));
  }
}

}  // namespace

Footprint graph_folder_footprint(const VectorFile& x, const KnnGraphParams& params, const Resources& resources) {
  const Footprint in_memory = needed_in_memory(x, params, resources);
  if (is_exact_from_disk(x, params, resources)) {
    const Footprint from_disk = exact_on_disk_footprint(x, params, resources);
    return from_disk.host < in_memory.host ? from_disk : in_memory;
  }
  const std::optional<DiskCells> cells = cells_from_disk(x, params, in_memory, resources);
  return cells ? cells_on_disk_footprint(x, cells->params, resources.with_device(cells->device)) : in_memory;
}

bool keeps_graph_steps(const std::string& folder, const GraphWork& work) {
  const auto holds_work = [](const std::string& steps) { return WorkFolder::holds_work(real_disk(), steps); };
  return !work.folder.empty() || work.keep || holds_work(steps_folder(folder, work)) ||
         holds_work(ending_folder(folder, work));
}

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
    const DiskCells cells{graph_device(RowsInfo(x), params, resources), {}, cells_params(x.rows(), params)};
    return graph_from_disk(x, folder, cells, params, work, resources);
  }
  const bool keeps = keeps_graph_steps(folder, work);
  const Footprint needed = keeps ? Footprint() : needed_in_memory(x, params, resources);
  if (params.method == GraphMethod::automatic && WorkFolder::holds_work(real_disk(), ending_folder(folder, work))) {
    return exact_to_folder(x, folder, params, work, true, resources);
  }
  if (keeps || !has_room_for(needed, resources)) {
    if (is_merged_on_disk(x, params)) return ggm_to_folder(x, folder, params, work, resources);
    const auto cells = cells_from_disk(x, params, keeps ? std::nullopt : std::optional(needed), resources);
    if (cells) return graph_from_disk(x, folder, *cells, params, work, resources);
    if (is_exact_from_disk(x, params, resources)) return exact_to_folder(x, folder, params, work, false, resources);
  }
  if (keeps) refuse_steps(x, folder, params, work, resources);
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
      throw InvalidArgument(fmt::format("graph {} has {} rows, and '{}' has {}; give the vectors that it was built of",
                                        i + 1, graph.rows(), x.path(), x.rows()));
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
    rows.push_back(all_rows(x, resources));
    read.push_back({graph, rows.back().view()});
  }
  return merge_graphs(read, params, resources);
}

}  // namespace

GraphReport merge_graphs_folder(const std::vector<GraphOfFile>& parts, const std::string& folder,
                                const GraphMergeParams& params, const GraphWork& work, const Resources& resources) {
  params.validate();
  check_parts(parts);
  if (!work.part.alone()) throw Unsupported("graphs are not merged in parts of the work; leave the part out");
  const auto merge = [&](const Resources& used) { return merge_in_memory(parts, params, used); };
  // One part has nothing to merge with.
  const bool alone = parts.size() == 1;
  const bool keeps = !alone && keeps_graph_steps(folder, work);
  const auto needs_disk = [&] {
    const Footprint in_memory = footprint_of_call(resources, merge);
    return !has_room_for(in_memory, resources) &&
           merge_on_disk_footprint(merge_work(parts, params), resources).host < in_memory.host;
  };
  if (alone || (!keeps && !(counts_memory(resources) && needs_disk()))) {
    const KnnGraph graph = within_limits("merging graphs", resources, merge);
    save_graph_folder(graph, folder, work.form, resources);
    return graph.report();
  }
  const DiskWork kept = disk_work(folder, work);
  int64_t rows = 0;
  for (const GraphOfFile& part : parts) rows += part.x.rows();
  FolderSink sink({rows, parts[0].graph.k()}, parts[0].graph.metric(), folder, work.form);
  const GraphReport report = measured(resources, [&](const Resources& counted) {
    ShardWork merges = merge_work(parts, params);
    put_parts(parts, merges.manifest, counted);
    return merge_on_disk(merges, kept, sink, counted);
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
