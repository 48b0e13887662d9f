#include "knn_command.hpp"

#include <kith/error.hpp>

#include "exit_codes.hpp"
#include "file_report.hpp"
#include "filter_file.hpp"
#include "output_paths.hpp"
#include "process_memory.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

namespace kith::cli {
namespace {

// The files a search fills. Made before it starts, so that a name that cannot be written costs no work.
class ResultFiles {
 public:
  ResultFiles(const KnnOptions& options, int64_t queries) : k_(options.params.k) {
    if (!options.out_ids.empty()) ids_.emplace(options.out_ids, queries, k_);
    if (!options.out_distances.empty()) distances_.emplace(options.out_distances, DType::f32, queries, k_);
  }

  void append(const NeighborsView& part) {
    if (ids_) ids_->append(part.ids, part.queries);
    if (distances_) distances_->append(MatrixView(part.distances, part.queries, k_));
  }

  // First everything that can fail, a full disk for instance: either both files are new or neither is.
  void commit() {
    if (ids_) ids_->sync();
    if (distances_) distances_->sync();
    if (ids_) ids_->commit();
    if (distances_) distances_->commit();
  }

 private:
  int64_t k_;
  std::optional<IdFileWriter> ids_;
  std::optional<VectorFileWriter> distances_;
};

std::vector<NamedPath> outputs_of(const KnnOptions& options) {
  std::vector<NamedPath> outputs;
  if (!options.out_ids.empty()) outputs.push_back({"--out-ids", options.out_ids});
  if (!options.out_distances.empty()) outputs.push_back({"--out-distances", options.out_distances});
  if (outputs.empty()) throw UsageError("knn has no output; give --out-ids, --out-distances or both");
  return outputs;
}

std::vector<NamedPath> inputs_of(const KnnOptions& options) {
  std::vector<NamedPath> inputs{{"--base", options.base}, {"--queries", options.queries}};
  if (!options.filter.empty()) inputs.push_back({"--filter", options.filter});
  return inputs;
}

}  // namespace

Report run_knn(const KnnOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const std::vector<NamedPath> outputs = outputs_of(options);
  options.params.validate();
  check_outputs(outputs, inputs_of(options));

  const VectorFile base(options.base);
  const VectorFile queries(options.queries);
  ResultFiles results(options, queries.rows());
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
    knn(
        queries, base, [&](int64_t, const NeighborsView& part) { results.append(part); }, params, resources);
    search_seconds = search.seconds();
    results.commit();
  });

  const double rate = search_seconds > 0 ? static_cast<double>(queries.rows()) / search_seconds : 0;
  std::string written;
  for (const NamedPath& output : outputs) written += (written.empty() ? "" : ", ") + output.path;

  Report report;
  report.text = fmt::format(
      "{} queries, {} base rows of {} values ({}), k = {}, metric {}\n"
      "device {}, {} threads: {:.3f} s, {:.4g} queries/s\n"
      "wrote {}\n",
      queries.rows(), base.rows(), base.cols(), name_of(base.dtype()), options.params.k, name_of(options.params.metric),
      device, threads, search_seconds, rate, written);
  for (const std::string& line : log) report.text += line + "\n";

  JsonObject result;
  result.object("base", describe_vectors(base)).object("queries", describe_vectors(queries));
  if (!options.filter.empty()) result.text("filter", options.filter);
  result.number("k", options.params.k).text("metric", name_of(options.params.metric));
  result.text("device", device).number("threads", threads);
  if (!options.out_ids.empty()) result.text("out_ids", options.out_ids);
  if (!options.out_distances.empty()) result.text("out_distances", options.out_distances);
  JsonObject memory;
  if (run.memory_limit) memory.number("limit_bytes", *run.memory_limit);
  if (run.device_memory_limit) memory.number("device_limit_bytes", *run.device_memory_limit);
  memory.number("peak_resident_bytes", peak_resident_bytes());
  JsonObject timings;
  timings.real("search_seconds", search_seconds)
      .real("total_seconds", total.seconds())
      .real("queries_per_second", rate);
  report.json.text("command", "knn").object("result", std::move(result)).object("memory", std::move(memory));
  report.json.object("timings", std::move(timings)).texts("log", log);
  return report;
}

}  // namespace kith::cli
