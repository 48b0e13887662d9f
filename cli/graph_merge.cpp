// kith graph merge, extend and refine: make a graph from other graphs, from files to files.
#include <kith/error.hpp>
#include <kith/graph_file.hpp>
#include <kith/graph_folder.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/vector_file.hpp>

#include "exit_codes.hpp"
#include "file_report.hpp"
#include "graph_commands.hpp"
#include "output_paths.hpp"
#include "process_memory.hpp"
#include "stopwatch.hpp"
#include "whole_vectors.hpp"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace kith::cli {
namespace {

// Does the work with all inputs open, and writes the result.
Report make_graph(const std::string& command, const std::vector<NamedPath>& inputs, const NeighborPaths& out,
                  const RunOptions& run, const std::function<KnnGraph(const Resources&)>& work) {
  const Stopwatch total;
  check_outputs({{"--out-ids", out.ids}, {"--out-distances", out.distances}}, inputs);
  KnnGraph graph;
  int threads = 0;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    threads = resources.threads();
    graph = work(resources);
    NeighborFiles files(out, graph.rows(), graph.k());
    files.append(
        {const_cast<int64_t*>(graph.ids()), const_cast<float*>(graph.distances()), graph.rows(), graph.k(), {}});
    files.commit();
  });
  Report report;
  report.text = fmt::format("graph of {} rows, k = {}, metric {}\n{}{} threads: {:.3f} s\nwrote {}, {}\n", graph.rows(),
                            graph.k(), name_of(graph.metric()), report_text(graph.report()), threads,
                            graph.report().seconds, out.ids, out.distances);
  for (const std::string& line : log) report.text += line + "\n";
  JsonObject result;
  result.number("rows", graph.rows()).number("k", graph.k()).text("metric", name_of(graph.metric()));
  result.number("threads", threads).object("report", report_json(graph.report()));
  result.text("out_ids", out.ids).text("out_distances", out.distances);
  JsonObject memory;
  if (run.memory_limit) memory.number("limit_bytes", *run.memory_limit);
  memory.number("peak_resident_bytes", peak_resident_bytes());
  JsonObject timings;
  timings.real("build_seconds", graph.report().seconds).real("total_seconds", total.seconds());
  report.json.text("command", command).object("result", std::move(result)).object("memory", std::move(memory));
  report.json.object("timings", std::move(timings)).texts("log", log);
  return report;
}

// The same from folders to a folder, which work(resources) writes.
Report make_folder(const std::string& command, const std::vector<NamedPath>& inputs, const std::string& folder,
                   const RunOptions& run, const std::function<GraphReport(const Resources&)>& work) {
  const Stopwatch total;
  check_outputs({{"--out", folder + "/ids.npy"}, {"--out", folder + "/distances.npy"}}, inputs);
  make_output_folder(folder);
  GraphReport made;
  const std::vector<std::string> log =
      with_resources(run, [&](const Resources& resources) { made = work(resources); });
  const GraphFolderInfo info = graph_folder_info(folder);
  Report report;
  report.text = fmt::format(
      "graph of {} rows, k = {}, metric {}\n{}{:.3f} s\n{}wrote {}\n", info.rows, info.k, name_of(info.metric),
      report_text(made), made.seconds, hashes_text(info.hashes), folder);
  for (const std::string& line : log) report.text += line + "\n";
  JsonObject result;
  result.number("rows", info.rows).number("k", info.k).text("metric", name_of(info.metric));
  result.object("report", report_json(made)).object("hashes", hashes_json(info.hashes)).text("out", folder);
  JsonObject memory;
  if (run.memory_limit) memory.number("limit_bytes", *run.memory_limit);
  memory.number("peak_resident_bytes", peak_resident_bytes());
  JsonObject timings;
  timings.real("build_seconds", made.seconds).real("total_seconds", total.seconds());
  report.json.text("command", command).object("result", std::move(result)).object("memory", std::move(memory));
  report.json.object("timings", std::move(timings)).texts("log", log);
  return report;
}

void add_folder(const std::string& folder, std::vector<NamedPath>& inputs) {
  inputs.push_back({"--graph", folder + "/ids.npy"});
  inputs.push_back({"--graph", folder + "/distances.npy"});
}

// Merges graphs from folders to a folder, also under a limit.
Report merge_folders(const GraphMergeOptions& options, const RunOptions& run) {
  const size_t parts = options.graphs.size();
  if (parts < 2 || options.data.size() != parts || !options.ids.empty() || !options.distances.empty() ||
      options.folder.empty() || !options.out.ids.empty() || !options.out.distances.empty()) {
    throw UsageError(
        fmt::format("{} folders for --graph and {} files for --data; give as many of each, at least two, in the "
                    "same order, and --out FOLDER, without --ids, --distances, --out-ids and --out-distances",
                    parts, options.data.size()));
  }
  std::vector<NamedPath> inputs;
  for (size_t i = 0; i < parts; ++i) {
    add_folder(options.graphs[i], inputs);
    inputs.push_back({"--data", options.data[i]});
  }
  return make_folder("graph merge", inputs, options.folder, run, [&](const Resources& resources) {
    std::vector<GraphOfFile> graphs;
    for (size_t i = 0; i < parts; ++i) {
      graphs.push_back({load_graph_folder(options.graphs[i], resources), VectorFile(options.data[i])});
    }
    return merge_graphs_folder(graphs, options.folder, options.params, options.work, resources);
  });
}

Report extend_folder(const GraphExtendOptions& options, const RunOptions& run) {
  if (options.graph_folder.empty() || options.folder.empty() || !options.graph.ids.empty() ||
      !options.graph.distances.empty() || !options.out.ids.empty() || !options.out.distances.empty()) {
    throw UsageError(
        "--graph FOLDER goes with --out FOLDER, without --ids, --distances, --out-ids and --out-distances");
  }
  std::vector<NamedPath> inputs{{"--data", options.data}, {"--new", options.fresh}};
  add_folder(options.graph_folder, inputs);
  return make_folder("graph extend", inputs, options.folder, run, [&](const Resources& resources) {
    const GraphOfFile old{load_graph_folder(options.graph_folder, resources), VectorFile(options.data)};
    return extend_graph_folder(old, VectorFile(options.fresh), options.folder, options.params, options.work, resources);
  });
}

}  // namespace

Report run_graph_merge(const GraphMergeOptions& options, const RunOptions& run) {
  options.params.validate();
  if (!options.graphs.empty() || !options.folder.empty()) return merge_folders(options, run);
  if (!options.work.folder.empty() || options.work.keep) throw UsageError("--work and --keep-work go with --out");
  check_folder_or_files("", options.out.ids, options.out.distances, "graph merge",
                        "--graph and --out FOLDER, or --out-ids and --out-distances");
  const size_t parts = options.ids.size();
  if (parts < 2 || options.distances.size() != parts || options.data.size() != parts) {
    throw UsageError(fmt::format("{} files for --ids, {} for --distances and {} for --data; give as many of each, at "
                                 "least two, in the same order",
                                 parts, options.distances.size(), options.data.size()));
  }
  std::vector<NamedPath> inputs;
  for (size_t i = 0; i < parts; ++i) {
    inputs.push_back({"--ids", options.ids[i]});
    inputs.push_back({"--distances", options.distances[i]});
    inputs.push_back({"--data", options.data[i]});
  }
  return make_graph("graph merge", inputs, options.out, run, [&](const Resources& resources) {
    std::vector<std::unique_ptr<WholeVectors>> rows;
    std::vector<GraphPart> graphs;
    for (size_t i = 0; i < parts; ++i) {
      rows.push_back(std::make_unique<WholeVectors>(options.data[i], resources));
      graphs.push_back({load_graph(options.ids[i], options.distances[i], options.metric, resources), rows[i]->view()});
    }
    return merge_graphs(graphs, options.params, resources);
  });
}

Report run_graph_extend(const GraphExtendOptions& options, const RunOptions& run) {
  if (!options.graph_folder.empty() || !options.folder.empty()) return extend_folder(options, run);
  if (!options.work.folder.empty() || options.work.keep) throw UsageError("--work and --keep-work go with --out");
  if (options.graph.ids.empty() || options.graph.distances.empty()) {
    throw UsageError("no graph: give --graph FOLDER, or --ids and --distances");
  }
  check_folder_or_files("", options.out.ids, options.out.distances, "graph extend",
                        "--graph and --out FOLDER, or --out-ids and --out-distances");
  const std::vector<NamedPath> inputs{{"--ids", options.graph.ids},
                                      {"--distances", options.graph.distances},
                                      {"--data", options.data},
                                      {"--new", options.fresh}};
  return make_graph("graph extend", inputs, options.out, run, [&](const Resources& resources) {
    const KnnGraph graph = load_graph(options.graph.ids, options.graph.distances, options.graph.metric, resources);
    const WholeVectors x(options.data, resources);
    const WholeVectors fresh(options.fresh, resources);
    return extend_graph(graph, x.view(), fresh.view(), options.params, resources);
  });
}

Report run_graph_refine(const GraphRefineOptions& options, const RunOptions& run) {
  options.params.validate();
  const GraphPaths paths = resolved(options.graph, "graph refine");
  const std::vector<NamedPath> inputs{
      {"--ids", paths.ids}, {"--distances", paths.distances}, {"--data", options.data}};
  return make_graph("graph refine", inputs, options.out, run, [&](const Resources& resources) {
    const KnnGraph graph = load(paths, resources);
    const WholeVectors x(options.data, resources);
    return refine_graph(graph, x.view(), options.params, resources);
  });
}

}  // namespace kith::cli
