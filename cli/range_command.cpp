#include "range_command.hpp"

#include <kith/error.hpp>
#include <kith/host_buffer.hpp>
#include <kith/range_limit.hpp>

#include "file_report.hpp"
#include "filter_file.hpp"
#include "output_paths.hpp"
#include "process_memory.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace kith::cli {
namespace {

std::vector<NamedPath> outputs_of(const RangeOptions& options) {
  std::vector<NamedPath> outputs{{"--out-offsets", options.out_offsets}, {"--out-ids", options.out_ids}};
  if (!options.out_distances.empty()) outputs.push_back({"--out-distances", options.out_distances});
  return outputs;
}

std::vector<NamedPath> inputs_of(const RangeOptions& options) {
  std::vector<NamedPath> inputs{{"--base", options.base}, {"--queries", options.queries}};
  if (!options.filter.empty()) inputs.push_back({"--filter", options.filter});
  return inputs;
}

// Keeps the results in memory, since a file's header needs their number, which is known only at the end.
struct FoundInRange {
  struct Part {
    HostArray<int64_t> ids;
    HostArray<float> distances;
  };
  std::vector<int64_t> offsets{0};
  std::vector<Part> parts;

  // `left_out`: the row to leave out of the first query's results; the next query leaves out the next row; -1: none.
  void add(const RangeView& view, int64_t left_out, const Resources& resources) {
    int64_t size = 0;
    const auto keeps = [&](int64_t q, int64_t i) { return left_out < 0 || view.ids[i] != left_out + q; };
    const int64_t before = offsets.back();
    for (int64_t q = 0; q < view.queries; ++q) {
      for (int64_t i = view.offsets[q]; i < view.offsets[q + 1]; ++i) size += keeps(q, i) ? 1 : 0;
      offsets.push_back(before + size);
    }
    Part part{{size, "the ids of the rows in range", resources},
              {size, "the distances of the rows in range", resources}};
    int64_t at = 0;
    for (int64_t q = 0; q < view.queries; ++q) {
      for (int64_t i = view.offsets[q]; i < view.offsets[q + 1]; ++i) {
        if (!keeps(q, i)) continue;
        part.ids[at] = view.ids[i];
        part.distances[at++] = view.distances[i];
      }
    }
    parts.push_back(std::move(part));
  }
};

// Fails early if an output cannot be written, by starting files that are not committed.
void try_outputs(const RangeOptions& options) {
  const IdFileWriter offsets(options.out_offsets, 1, 1);
  const IdFileWriter ids(options.out_ids, 1, 1);
  if (options.out_distances.empty()) return;
  const VectorFileWriter distances(options.out_distances, DType::f32, 1, 1);
}

void write_files(const RangeOptions& options, const FoundInRange& found) {
  const int64_t total = found.offsets.back();
  IdFileWriter offsets(options.out_offsets, static_cast<int64_t>(found.offsets.size()), 1);
  offsets.append(found.offsets.data(), static_cast<int64_t>(found.offsets.size()));
  IdFileWriter ids(options.out_ids, total, 1);
  std::optional<VectorFileWriter> distances;
  if (!options.out_distances.empty()) distances.emplace(options.out_distances, DType::f32, total, 1);
  for (const FoundInRange::Part& part : found.parts) {
    ids.append(part.ids.data(), part.ids.size());
    if (distances) distances->append(MatrixView(part.distances.data(), part.distances.size(), 1));
  }
  // First everything that can fail: either all files are new or none is.
  offsets.sync();
  ids.sync();
  if (distances) distances->sync();
  offsets.commit();
  ids.commit();
  if (distances) distances->commit();
}

}  // namespace

Report run_range(const RangeOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const std::vector<NamedPath> outputs = outputs_of(options);
  options.params.validate();
  check_outputs(outputs, inputs_of(options));
  const VectorFile base(options.base);
  const VectorFile queries(options.queries);
  if (options.without_self && queries.rows() != base.rows()) {
    throw InvalidArgument(fmt::format("--without-self is for a file searched for its own rows; {} has {} and {} has {}",
                                      options.queries, queries.rows(), options.base, base.rows()));
  }
  try_outputs(options);
  FoundInRange found;
  double search_seconds = 0;
  int threads = 0;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    threads = resources.threads();
    const FilterFile filter(options.filter, resources);
    RangeParams params = options.params;
    params.filter = filter.rows();
    const Stopwatch search;
    try {
      const auto keep = [&](int64_t first, const RangeView& part) {
        found.add(part, options.without_self ? first : -1, resources);
      };
      range_search(queries, base, keep, params, resources);
    } catch (const OutOfMemory&) {
      found = FoundInRange();
      throw_kept_range_limit(queries, base, params, resources);
    }
    search_seconds = search.seconds();
    write_files(options, found);
  });

  std::string written;
  for (const NamedPath& output : outputs) written += (written.empty() ? "" : ", ") + output.path;
  Report report;
  report.text = fmt::format(
      "{} queries, {} base rows of {} values ({}), radius {}, metric {}\n"
      "{} rows in range, {} threads: {:.3f} s\n"
      "wrote {}\n",
      queries.rows(), base.rows(), base.cols(), name_of(base.dtype()), options.params.radius,
      name_of(options.params.metric), found.offsets.back(), threads, search_seconds, written);
  for (const std::string& line : log) report.text += line + "\n";
  JsonObject result;
  result.object("base", describe_vectors(base)).object("queries", describe_vectors(queries));
  if (!options.filter.empty()) result.text("filter", options.filter);
  result.real("radius", options.params.radius).text("metric", name_of(options.params.metric));
  result.number("found", found.offsets.back()).number("threads", threads);
  result.text("out_offsets", options.out_offsets).text("out_ids", options.out_ids);
  if (!options.out_distances.empty()) result.text("out_distances", options.out_distances);
  JsonObject memory;
  if (run.memory_limit) memory.number("limit_bytes", *run.memory_limit);
  memory.number("peak_resident_bytes", peak_resident_bytes());
  JsonObject timings;
  timings.real("search_seconds", search_seconds).real("total_seconds", total.seconds());
  report.json.text("command", "range").object("result", std::move(result)).object("memory", std::move(memory));
  report.json.object("timings", std::move(timings)).texts("log", log);
  return report;
}

void offer_range(Commands& commands) {
  const auto options = std::make_shared<RangeOptions>();
  OfferedCommand command = commands.offer("range", "Find all base rows within a radius of every query",
                                          [options](const RunOptions& run) { return run_range(*options, run); });
  command.file("--base,--data", options->base, "Vectors to search").required();
  command.file("--queries", options->queries, "Vectors to search for").required();
  command
      .real("--radius", options->params.radius,
            "Largest distance, in the metric's unit; for inner_product the smallest product")
      .required();
  command.metric(options->params.metric);
  command.check_finite(options->params.check_finite);
  command.filter(options->filter);
  command.flag("--without-self", options->without_self,
               "For a file searched for its own rows: query i does not find row i");
  command.file("--out-offsets", options->out_offsets, "Where each query's rows begin: a column of ids").required();
  command.file("--out-ids", options->out_ids, "Where the rows go: .ibin (int32) or .npy (int64), a column").required();
  command.file("--out-distances", options->out_distances, "Where their distances go: a column");
  command.run_options();
}

}  // namespace kith::cli
