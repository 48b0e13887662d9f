// kith graph eval and info: the recall of a graph, and its statistics.
#include <kith/error.hpp>
#include <kith/graph_file.hpp>
#include <kith/graph_folder.hpp>
#include <kith/vector_file.hpp>

#include "exit_codes.hpp"
#include "file_report.hpp"
#include "graph_commands.hpp"
#include "stopwatch.hpp"
#include "whole_vectors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace kith::cli {
namespace {

JsonObject paths_json(const GraphPaths& paths) {
  JsonObject json;
  json.text("ids", paths.ids).text("distances", paths.distances).text("metric", name_of(paths.metric));
  return json;
}

}  // namespace

GraphPaths resolved(const GraphPaths& paths, std::string_view command) {
  check_folder_or_files(paths.folder, paths.ids, paths.distances, command, "--graph FOLDER, or --ids and --distances");
  if (paths.folder.empty()) return paths;
  return {paths.folder, paths.folder + "/ids.npy", paths.folder + "/distances.npy",
          graph_folder_info(paths.folder).metric};
}

KnnGraph load(const GraphPaths& resolved, const Resources& resources) {
  return resolved.folder.empty() ? load_graph(resolved.ids, resolved.distances, resolved.metric, resources)
                                : load_graph_folder(resolved.folder, resources);
}

Report run_graph_eval(const GraphEvalOptions& options, const RunOptions& run) {
  const Stopwatch total;
  options.params.validate();
  const GraphPaths paths = resolved(options.graph, "graph eval");
  const VectorFile data(options.data);
  GraphRecall measured;
  int64_t rows = 0;
  int64_t k = 0;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    const KnnGraph graph = load(paths, resources);
    rows = graph.rows();
    k = graph.k();
    const WholeVectors x(options.data, resources);
    measured = measure_recall(graph, x.view(), options.params, resources);
  });
  Report report;
  report.text = fmt::format("{} of {} rows looked at\nrecall@{:<6} {:.6f} +- {:.6f}\n", measured.rows, rows, k,
                            measured.recall, measured.standard_error);
  if (k > 10) report.text += fmt::format("recall@10     {:.6f}\n", measured.recall_at_10);
  for (const std::string& line : log) report.text += line + "\n";
  JsonObject result;
  result.object("graph", paths_json(paths)).object("data", describe_vectors(data));
  result.number("rows", rows).number("k", k).number("rows_looked_at", measured.rows);
  result.real("recall", measured.recall).real("standard_error", measured.standard_error);
  result.real("recall_at_10", measured.recall_at_10);
  JsonObject timings;
  timings.real("total_seconds", total.seconds());
  report.json.text("command", "graph eval").object("result", std::move(result)).object("timings", std::move(timings));
  report.json.texts("log", log);
  return report;
}

Report run_graph_info(const GraphInfoOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const GraphPaths paths = resolved(options.graph, "graph info");
  GraphHashes hashes;
  int64_t rows = 0;
  int64_t k = 0;
  int64_t edges = 0;
  int64_t parts = 0;
  int64_t most = 0;
  int64_t alone = 0;  // rows that are not a neighbour of any row
  float nearest = 0;
  float farthest = 0;
  (void)with_resources(run, [&](const Resources& resources) {
    const KnnGraph graph = load(paths, resources);
    hashes = hash_graph(graph, resources);
    if (!paths.folder.empty() && hashes != graph_folder_info(paths.folder).hashes) {
      throw CorruptFile(
          fmt::format("'{}': the arrays are not those that report.json tells of: their hashes differ", paths.folder),
          paths.folder, 0);
    }
    rows = graph.rows();
    k = graph.k();
    parts = graph.components(resources).sets;
    const HostBuffer degrees = graph.in_degrees(resources);
    for (int64_t i = 0; i < rows; ++i) {
      most = std::max(most, degrees.as<int64_t>()[i]);
      alone += degrees.as<int64_t>()[i] == 0;
      for (int64_t j = 0; j < k && graph.ids(i)[j] >= 0; ++j) {
        const float distance = graph.distances(i)[j];
        nearest = edges == 0 ? distance : std::min(nearest, distance);
        farthest = edges == 0 ? distance : std::max(farthest, distance);
        ++edges;
      }
    }
  });
  Report report;
  report.text =
      fmt::format("graph of {} rows, k = {}, metric {}: {} edges, {} missing\n{} connected component{}\n", rows, k,
                  name_of(paths.metric), edges, rows * k - edges, parts, parts == 1 ? "" : "s");
  report.text += fmt::format("in-degree: up to {}, 0 for {} rows\n", most, alone);
  if (edges > 0) report.text += fmt::format("distances: {} to {}\n", nearest, farthest);
  report.text += hashes_text(hashes);
  JsonObject result;
  result.object("graph", paths_json(paths)).object("hashes", hashes_json(hashes));
  result.number("rows", rows).number("k", k).number("edges", edges);
  result.number("missing", rows * k - edges).number("components", parts);
  result.number("largest_in_degree", most).number("rows_without_in_edges", alone);
  if (edges > 0) {
    result.real("smallest_distance", static_cast<double>(nearest));
    result.real("largest_distance", static_cast<double>(farthest));
  }
  JsonObject timings;
  timings.real("total_seconds", total.seconds());
  report.json.text("command", "graph info").object("result", std::move(result)).object("timings", std::move(timings));
  return report;
}

}  // namespace kith::cli
