// kith index search: searches the queries of a file, piece by piece.
#include <kith/distributed.hpp>
#include <kith/vector_file.hpp>

#include "file_report.hpp"
#include "filter_file.hpp"
#include "index_commands.hpp"
#include "index_files.hpp"
#include "output_paths.hpp"
#include "process_memory.hpp"
#include "rank_results.hpp"
#include "rate_text.hpp"
#include "row_pieces.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace kith::cli {
namespace {

std::vector<NamedPath> inputs_of(const IndexSearchOptions& options) {
  std::vector<NamedPath> inputs{{"--index", options.index}, {"--queries", options.queries}};
  if (!options.filter.empty()) inputs.push_back({"--filter", options.filter});
  if (!options.refine_from.empty()) inputs.push_back({"--refine-from", options.refine_from});
  return inputs;
}

// Returns the seconds spent in searches.
double search_all(const Index& index, const VectorFile& queries, const SearchParams& params, const NeighborsSink& sink,
                  const Resources& resources) {
  constexpr int64_t kNeighborBytes = sizeof(int64_t) + sizeof(float);
  const ReadMemory memory = queries.reserve_memory(resources);
  // A quarter of rows_per_piece(), since a search needs more memory than queries and results.
  const int64_t row_bytes = 4 * (queries.cols() * size_of(queries.dtype()) + params.k * kNeighborBytes);
  const int64_t piece = rows_per_piece(queries.rows(), row_bytes, resources);
  MatrixBuffer rows(queries.dtype(), piece, queries.cols(), "a piece of the queries", resources);
  double seconds = 0;
  for (int64_t done = 0; done < queries.rows(); done += piece) {
    resources.check_cancelled();
    const MutableMatrixView part = rows.mutable_view().slice(0, std::min(piece, queries.rows() - done));
    queries.read(done, part);
    const Stopwatch watch;
    Neighbors found = index.search(part, params, resources);
    seconds += watch.seconds();
    sink(done, found.view());
    resources.report({"queries", done + part.rows(), queries.rows()});
  }
  return seconds;
}

}  // namespace

Report run_index_search(const IndexSearchOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const std::vector<NamedPath> outputs = options.out.outputs("index search");
  KnnParams{.k = options.params.k}.validate();
  check_outputs(outputs, inputs_of(options));

  const VectorFile queries(options.queries);
  std::optional<VectorFile> originals;
  if (!options.refine_from.empty()) originals.emplace(options.refine_from);
  std::optional<NeighborFiles> results;
  std::optional<RankResults> shared;
  if (run.ranks == nullptr) {
    results.emplace(options.out, queries.rows(), options.params.k);
  } else {
    shared.emplace(options.out, queries.rows(), options.params.k, *run.ranks);
  }
  IndexInfo info;
  double load_seconds = 0;
  double search_seconds = 0;
  int threads = 0;
  std::string device;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    threads = resources.threads();
    device = name_of(resources.device());
    const Stopwatch load;
    const Index index = open_index(options.index, resources, options.load);
    load_seconds = load.seconds();
    info = index.info();
    const FilterFile filter(options.filter, resources);
    SearchParams params = options.params;
    params.filter = filter.rows();
    params.refine_from = originals ? &*originals : nullptr;
    const auto sink = [&](int64_t, const NeighborsView& part) {
      results ? results->append(part) : shared->append(part);
    };
    if (run.ranks == nullptr) {
      search_seconds = search_all(index, queries, params, sink, resources);
    } else {
      const Stopwatch search;
      kith::search(index, *run.ranks, queries, sink, params, resources);
      search_seconds = search.seconds();
    }
    results ? results->commit() : shared->commit();
  });

  const double rate = search_seconds > 0 ? static_cast<double>(queries.rows()) / search_seconds : 0;
  std::string written;
  for (const NamedPath& output : outputs) written += (written.empty() ? "" : ", ") + output.path;
  const std::string probes = options.params.probes > 0 ? fmt::format(", probes {}", options.params.probes) : "";
  Report report;
  report.text = fmt::format(
      "{} queries, {} of {} vectors, k = {}{}, metric {}\n"
      "{}device {}, {} threads: {:.3f} s, {} queries/s\n"
      "wrote {}\n",
      queries.rows(), info.factory, info.size, options.params.k, probes, name_of(info.metric), run.ranks_text(), device,
      threads,
      search_seconds, rate_text(rate), written);
  for (const std::string& line : log) report.text += line + "\n";

  JsonObject result;
  result.object("index", index_json(info)).object("queries", describe_vectors(queries));
  if (!options.filter.empty()) result.text("filter", options.filter);
  result.number("k", options.params.k);
  if (options.params.probes > 0) result.number("probes", options.params.probes);
  if (options.params.refine > 0) result.number("refine", options.params.refine);
  if (options.params.beam > 0) result.number("beam", options.params.beam);
  if (options.params.width > 0) result.number("width", options.params.width);
  if (options.params.recall > 0) result.real("recall", options.params.recall);
  if (!options.refine_from.empty()) result.text("refine_from", options.refine_from);
  result.text("device", device).number("threads", threads);
  if (run.ranks != nullptr) result.number("ranks", run.ranks->size());
  for (const NamedPath& output : outputs)
    result.text(output.name == "--out-ids" ? "out_ids" : "out_distances", output.path);
  JsonObject memory;
  if (run.memory_limit) memory.number("limit_bytes", *run.memory_limit);
  if (!run.device_memory_limits.empty()) memory.number("device_limit_bytes", run.device_memory_limits.front());
  memory.number("peak_resident_bytes", peak_resident_bytes());
  JsonObject timings;
  timings.real("load_seconds", load_seconds).real("search_seconds", search_seconds);
  timings.real("total_seconds", total.seconds()).real("queries_per_second", rate);
  report.json.text("command", "index search").object("result", std::move(result)).object("memory", std::move(memory));
  report.json.object("timings", std::move(timings)).texts("log", log);
  return report;
}

}  // namespace kith::cli
