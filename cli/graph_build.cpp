// kith graph build: builds the graph of files of vectors, in a folder or as two files.
#include <kith/distributed.hpp>
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

#include <utility>
#include <variant>
#include <vector>

namespace kith::cli {

std::string report_text(const GraphReport& report) {
  std::string text = fmt::format("method {}", report.method);
  if (report.recall) {
    text += report.method == "exact" ? ", recall 1" : fmt::format(", recall {:.4f}", report.recall->recall);
    if (report.recall->standard_error > 0) text += fmt::format(" +- {:.4f}", report.recall->standard_error);
  }
  if (!report.reached) text += ", which is below what was asked for";
  return text + "\n";
}

JsonObject report_json(const GraphReport& report) {
  JsonObject json;
  json.text("method", report.method);
  JsonObject parameters;
  for (const GraphParameter& parameter : report.parameters) {
    if (const auto* flag = std::get_if<bool>(&parameter.value)) parameters.flag(parameter.name, *flag);
    if (const auto* number = std::get_if<int64_t>(&parameter.value)) parameters.number(parameter.name, *number);
    if (const auto* real = std::get_if<double>(&parameter.value)) parameters.real(parameter.name, *real);
    if (const auto* text = std::get_if<std::string>(&parameter.value)) parameters.text(parameter.name, *text);
  }
  json.object("parameters", std::move(parameters));
  if (report.recall) {
    json.real("recall", report.recall->recall).real("recall_at_10", report.recall->recall_at_10);
    json.real("standard_error", report.recall->standard_error).number("rows_looked_at", report.recall->rows);
  }
  json.flag("reached", report.reached);
  if (report.forecast) {
    json.number("forecast_probes", report.forecast->probes)
        .number("forecast_comparisons", report.forecast->comparisons);
  }
  std::vector<JsonObject> rounds;
  for (const GraphRound& round : report.rounds) {
    JsonObject& told = rounds.emplace_back();
    if (round.recall) told.real("recall", *round.recall);
    told.real("phi", round.phi).number("updates", round.updates).number("comparisons", round.comparisons);
    told.real("seconds", round.seconds);
  }
  json.list("rounds", std::move(rounds)).real("seconds", report.seconds);
  json.number("peak_host_bytes", report.peak_host_bytes).number("peak_device_bytes", report.peak_device_bytes);
  return json;
}

JsonObject hashes_json(const GraphHashes& hashes) {
  JsonObject json;
  json.text("ids_xxh3", fmt::format("{:016x}", hashes.ids));
  if (hashes.distances != 0) json.text("distances_xxh3", fmt::format("{:016x}", hashes.distances));
  return json;
}

std::string hashes_text(const GraphHashes& hashes) {
  if (hashes.distances == 0) return fmt::format("ids {:016x}\n", hashes.ids);
  return fmt::format("ids {:016x}, distances {:016x}\n", hashes.ids, hashes.distances);
}

void check_folder_or_files(const std::string& folder, const std::string& ids, const std::string& distances,
                           std::string_view command, std::string_view ways) {
  const bool both = !ids.empty() && !distances.empty();
  const bool none = ids.empty() && distances.empty();
  if (folder.empty() ? both : none) return;
  throw UsageError(fmt::format("{} needs {}, and not both", command, ways));
}

Report run_graph_build(const GraphBuildOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const bool to_folder = !options.folder.empty();
  check_folder_or_files(options.folder, options.out.ids, options.out.distances, "graph build",
                        "--out FOLDER, or --out-ids and --out-distances");
  GraphWork work = options.work;
  if (!options.part.empty()) work.part = parse_work_part(options.part);
  const bool has_work = !work.folder.empty() || work.keep || work.form != GraphFolderForm() || !work.part.alone();
  if (!to_folder && has_work) {
    throw UsageError("--work, --keep-work, --ids-only, --int32-ids and --part go with --out");
  }
  if (run.ranks != nullptr && !to_folder) throw UsageError("kith-mpi graph build needs --out FOLDER, which all ranks see");
  work.part.wait = options.wait;
  if (work.part.alone() && !work.part.wait) throw UsageError("--no-wait goes with --part");
  std::vector<NamedPath> outputs{{"--out-ids", options.out.ids}, {"--out-distances", options.out.distances}};
  if (to_folder) outputs = {{"--out", options.folder + "/ids.npy"}, {"--out", options.folder + "/distances.npy"}};
  options.params.validate();
  check_outputs(outputs, {{"--data", options.data}});
  const VectorFile data(options.data);
  // Created first, so that an unwritable path fails before the work.
  NeighborFiles files(options.out, data.rows(), options.params.k);
  if (to_folder) make_output_folder(options.folder);
  GraphReport made;
  GraphHashes hashes;
  int threads = 0;
  std::string device;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    threads = resources.threads();
    device = name_of(resources.device());
    if (run.ranks != nullptr) {
      made = knn_graph_folder(*run.ranks, data, options.folder, options.params, work, resources);
      hashes = graph_folder_info(options.folder).hashes;
      return;
    }
    // Under a limit that may be too small, for parts, for several devices and with a work folder, it works from disk.
    const bool limited = run.memory_limit || !run.device_memory_limits.empty();
    const bool in_parts = resources.parts() > 1 || !work.part.alone();
    if (to_folder && (limited || in_parts || keeps_graph_steps(options.folder, work))) {
      made = knn_graph_folder(data, options.folder, options.params, work, resources);
      hashes = graph_folder_info(options.folder).hashes;
      return;
    }
    const WholeVectors x(options.data, resources);
    const KnnGraph graph = knn_graph(x.view(), options.params, resources);
    made = graph.report();
    if (to_folder) {
      save_graph_folder(graph, options.folder, work.form, resources);
      hashes = graph_folder_info(options.folder).hashes;
      return;
    }
    hashes = hash_graph(graph, resources);
    files.append(
        {const_cast<int64_t*>(graph.ids()), const_cast<float*>(graph.distances()), graph.rows(), graph.k(), {}});
    files.commit();
  });

  Report report;
  report.text = fmt::format("graph of {} rows of {} values ({}), k = {}, metric {}\n{}{}device {}, {} threads: {:.3f} s\n{}"
                            "wrote {}\n",
                            data.rows(), data.cols(), name_of(data.dtype()), options.params.k,
                            name_of(options.params.metric), report_text(made), run.ranks_text(), device, threads, made.seconds,
                            hashes_text(hashes),
                            to_folder ? options.folder : options.out.ids + ", " + options.out.distances);
  for (const std::string& line : log) report.text += line + "\n";
  JsonObject result;
  result.object("data", describe_vectors(data)).number("k", options.params.k);
  result.text("metric", name_of(options.params.metric)).text("device", device).number("threads", threads);
  if (run.ranks != nullptr) result.number("ranks", run.ranks->size());
  result.object("report", report_json(made));
  result.object("hashes", hashes_json(hashes));
  if (to_folder) {
    result.text("out", options.folder);
  } else {
    result.text("out_ids", options.out.ids).text("out_distances", options.out.distances);
  }
  JsonObject memory;
  if (run.memory_limit) memory.number("limit_bytes", *run.memory_limit);
  if (!run.device_memory_limits.empty()) memory.number("device_limit_bytes", run.device_memory_limits.front());
  memory.number("peak_resident_bytes", peak_resident_bytes());
  JsonObject timings;
  timings.real("build_seconds", made.seconds).real("total_seconds", total.seconds());
  report.json.text("command", "graph build").object("result", std::move(result)).object("memory", std::move(memory));
  report.json.object("timings", std::move(timings)).texts("log", log);
  return report;
}

}  // namespace kith::cli
