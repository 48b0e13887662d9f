#include "dedup_command.hpp"

#include <kith/host_buffer.hpp>
#include <kith/vector_file.hpp>

#include "exit_codes.hpp"
#include "file_report.hpp"
#include "output_paths.hpp"
#include "stopwatch.hpp"
#include "whole_vectors.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kith::cli {
namespace {

std::vector<NamedPath> outputs_of(const DedupOptions& options) {
  std::vector<NamedPath> outputs;
  if (!options.out.empty()) outputs.push_back({"--out", options.out});
  if (!options.out_rows.empty()) outputs.push_back({"--out-rows", options.out_rows});
  if (!options.out_labels.empty()) outputs.push_back({"--out-labels", options.out_labels});
  if (outputs.empty()) throw UsageError("dedup has no output; give --out, --out-rows or --out-labels");
  return outputs;
}

// The first row of each group, in the order of the groups' numbers.
HostArray<int64_t> first_rows(const RowLabels& labels, const Resources& resources) {
  HostArray<int64_t> rows(labels.sets, "the rows that stay", resources);
  int64_t sets = 0;
  for (int64_t row = 0; row < labels.rows; ++row) {
    if (labels.begin()[row] == sets) rows[sets++] = row;
  }
  return rows;
}

}  // namespace

Report run_dedup(const DedupOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const std::vector<NamedPath> outputs = outputs_of(options);
  options.params.validate();
  check_outputs(outputs, {{"--data", options.data}});
  const VectorFile data(options.data);
  RowLabels labels;
  double seconds = 0;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    const WholeVectors x(options.data, resources);
    const Stopwatch search;
    labels = near_duplicates(x.view(), options.params, resources);
    seconds = search.seconds();
    const HostArray<int64_t> rows = first_rows(labels, resources);
    std::optional<VectorFileWriter> vectors;
    if (!options.out.empty()) {
      vectors.emplace(options.out, x.view().dtype(), rows.size(), x.view().cols());
      for (const int64_t row : rows) vectors->append(x.view().slice(row, 1));
      vectors->sync();
    }
    std::optional<IdFileWriter> numbers;
    if (!options.out_rows.empty()) {
      numbers.emplace(options.out_rows, rows.size(), 1);
      numbers->append(rows.data(), rows.size());
      numbers->sync();
    }
    std::optional<IdFileWriter> groups;
    if (!options.out_labels.empty()) {
      groups.emplace(options.out_labels, labels.rows, 1);
      groups->append(labels.begin(), labels.rows);
      groups->sync();
    }
    // Either all files are new or none is.
    if (vectors) vectors->commit();
    if (numbers) numbers->commit();
    if (groups) groups->commit();
  });
  std::string written;
  for (const NamedPath& output : outputs) written += (written.empty() ? "" : ", ") + output.path;
  Report report;
  report.text = fmt::format("{} rows, {} of them near duplicates of an earlier one (within {}, {}{}): {:.3f} s\nwrote {}\n",
                            labels.rows, labels.rows - labels.sets, options.params.radius,
                            name_of(options.params.metric), options.params.exact ? ", exact" : ", by the graph",
                            seconds, written);
  for (const std::string& line : log) report.text += line + "\n";
  JsonObject result;
  result.object("data", describe_vectors(data)).real("radius", options.params.radius);
  result.text("metric", name_of(options.params.metric)).flag("exact", options.params.exact);
  result.number("rows", labels.rows).number("left", labels.sets);
  for (const NamedPath& output : outputs) {
    result.text(output.name == "--out" ? "out" : output.name == "--out-rows" ? "out_rows" : "out_labels", output.path);
  }
  JsonObject timings;
  timings.real("search_seconds", seconds).real("total_seconds", total.seconds());
  report.json.text("command", "dedup").object("result", std::move(result)).object("timings", std::move(timings));
  report.json.texts("log", log);
  return report;
}

void offer_dedup(Commands& commands) {
  const auto options = std::make_shared<DedupOptions>();
  OfferedCommand command = commands.offer("dedup", "Find near duplicates, and write the vectors without them",
                                          [options](const RunOptions& run) { return run_dedup(*options, run); });
  command.file("--data,--base", options->data, "Vectors, in any format").required();
  command.real("--radius", options->params.radius, "Rows up to this distance are near duplicates, in the metric's unit")
      .required();
  command.metric(options->params.metric);
  command.flag("--exact", options->params.exact, "Find every pair, instead of a k-NN graph that finds nearly all");
  command.number("-k", options->params.k, "Neighbours of each row in the graph");
  command.real("--recall", options->params.recall, "Of the graph: the share of the true neighbours to find");
  command.count("--seed", options->params.seed, "Seed of the graph's random numbers");
  command.file("--out", options->out, "Where the vectors go, of each group the first");
  command.file("--out-rows", options->out_rows, "Where their row numbers go: a column of ids");
  command.file("--out-labels", options->out_labels, "Where the group of each row goes: a column of ids");
  command.check_finite(options->params.check_finite);
  command.run_options();
}

}  // namespace kith::cli
