#include "knn_command.hpp"

#include <kith/distributed.hpp>
#include <kith/error.hpp>

#include "file_report.hpp"
#include "filter_file.hpp"
#include "process_memory.hpp"
#include "rank_results.hpp"
#include "rate_text.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

namespace kith::cli {
namespace {

std::vector<NamedPath> inputs_of(const KnnOptions& options) {
  std::vector<NamedPath> inputs{{"--base", options.base}, {"--queries", options.queries}};
  if (!options.filter.empty()) inputs.push_back({"--filter", options.filter});
  return inputs;
}

}  // namespace

Report run_knn(const KnnOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const std::vector<NamedPath> outputs = options.out.outputs("knn");
  options.params.validate();
  check_outputs(outputs, inputs_of(options));

  const VectorFile base(options.base);
  const VectorFile queries(options.queries);
  std::optional<NeighborFiles> results;
  std::optional<RankResults> shared;
  if (run.ranks == nullptr) {
    results.emplace(options.out, queries.rows(), options.params.k);
  } else {
    shared.emplace(options.out, queries.rows(), options.params.k, *run.ranks);
  }
  double search_seconds = 0;
  int threads = 0;
  std::string device;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    threads = resources.threads();
    device = name_of(resources.device());
    const FilterFile filter(options.filter, resources);
    KnnParams params = options.params;
    params.filter = filter.rows();
    const Stopwatch search;
    const auto sink = [&](int64_t, const NeighborsView& part) {
      results ? results->append(part) : shared->append(part);
    };
    if (run.ranks == nullptr) {
      knn(queries, base, sink, params, resources);
    } else {
      knn(*run.ranks, queries, base, sink, params, resources);
    }
    search_seconds = search.seconds();
    results ? results->commit() : shared->commit();
  });

  const double rate = search_seconds > 0 ? static_cast<double>(queries.rows()) / search_seconds : 0;
  std::string written;
  for (const NamedPath& output : outputs) written += (written.empty() ? "" : ", ") + output.path;

  Report report;
  report.text = fmt::format(
      "{} queries, {} base rows of {} values ({}), k = {}, metric {}\n"
      "{}device {}, {} threads: {:.3f} s, {} queries/s\n"
      "wrote {}\n",
      queries.rows(), base.rows(), base.cols(), name_of(base.dtype()), options.params.k, name_of(options.params.metric),
      run.ranks_text(), device, threads, search_seconds, rate_text(rate), written);
  for (const std::string& line : log) report.text += line + "\n";

  JsonObject result;
  result.object("base", describe_vectors(base)).object("queries", describe_vectors(queries));
  if (!options.filter.empty()) result.text("filter", options.filter);
  result.number("k", options.params.k).text("metric", name_of(options.params.metric));
  result.text("device", device).number("threads", threads);
  if (run.ranks != nullptr) result.number("ranks", run.ranks->size());
  if (!options.out.ids.empty()) result.text("out_ids", options.out.ids);
  if (!options.out.distances.empty()) result.text("out_distances", options.out.distances);
  JsonObject memory;
  if (run.memory_limit) memory.number("limit_bytes", *run.memory_limit);
  if (!run.device_memory_limits.empty()) memory.number("device_limit_bytes", run.device_memory_limits.front());
  memory.number("peak_resident_bytes", peak_resident_bytes());
  JsonObject timings;
  timings.real("search_seconds", search_seconds)
      .real("total_seconds", total.seconds())
      .real("queries_per_second", rate);
  report.json.text("command", "knn").object("result", std::move(result)).object("memory", std::move(memory));
  report.json.object("timings", std::move(timings)).texts("log", log);
  return report;
}

void offer_knn(Commands& commands) {
  const auto options = std::make_shared<KnnOptions>();
  OfferedCommand command = commands.offer("knn", "Find the exact k nearest base rows of every query",
                                          [options](const RunOptions& run) { return run_knn(*options, run); });
  command.file("--base,--data", options->base, "Vectors to search, in any format that convert reads").required();
  command.file("--queries", options->queries, "Vectors to search for").required();
  command.number("-k", options->params.k, "Neighbours per query");
  command.metric(options->params.metric);
  command.check_finite(options->params.check_finite);
  command.filter(options->filter);
  command.file("--out-ids", options->out.ids, "Where ids go: .ibin or .ivecs (int32), .npy or .hdf5 (int64)");
  command.file("--out-distances", options->out.distances, "Where distances go: .fbin, .fvecs, .npy or .hdf5");
  command.run_options();
  command.on_ranks();
}

}  // namespace kith::cli
