// kith index tune: which search parameters reach which recall, as a table and a plot.
#include <kith/vector_file.hpp>

#include "file_report.hpp"
#include "index_commands.hpp"
#include "index_files.hpp"
#include "output_paths.hpp"
#include "process_memory.hpp"
#include "stopwatch.hpp"
#include "text_plot.hpp"
#include "whole_vectors.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace kith::cli {
namespace {

constexpr double kMicroseconds = 1e6;

std::string parameters_text(const TunedSearch& search) {
  std::string text;
  const std::pair<const char*, int64_t> all[] = {
      {"beam", search.beam}, {"width", search.width}, {"probes", search.probes}, {"refine", search.refine}};
  for (const auto& [name, value] : all) {
    if (value > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text.empty() ? "no parameters" : text;
}

JsonObject search_json(const TunedSearch& search) {
  JsonObject json;
  if (search.beam > 0) json.number("beam", search.beam);
  if (search.width > 0) json.number("width", search.width);
  if (search.probes > 0) json.number("probes", search.probes);
  if (search.refine > 0) json.number("refine", search.refine);
  json.real("recall", search.recall).real("standard_error", search.standard_error);
  json.real("compared", search.compared).real("seconds", search.seconds);
  return json;
}

std::string table_text(const TuneReport& report) {
  std::string text =
      fmt::format("{:>8}  {:>8}  {:>12}  {:>10}  parameters\n", "recall", "+-", "compared", "us a query");
  std::vector<PlotPoint> points;
  for (const TunedSearch& one : report.table.searches) {
    const bool chosen = one == report.chosen;
    text += fmt::format("{:>8.4f}  {:>8.4f}  {:>12.1f}  {:>10.1f}  {}{}\n", one.recall, one.standard_error,
                        one.compared, one.seconds * kMicroseconds, parameters_text(one), chosen ? "  <- chosen" : "");
    if (one.seconds > 0) points.push_back({one.seconds * kMicroseconds, one.recall, chosen});
  }
  return text + text_plot(points, "us a query", "recall");
}

}  // namespace

Report run_index_tune(const IndexTuneOptions& options, const RunOptions& run) {
  const Stopwatch total;
  options.params.validate();
  const std::string out = options.out.empty() ? options.index : options.out;
  check_outputs({{options.out.empty() ? "--index" : "--out", out}}, {{"--queries", options.queries}});
  if (!options.out.empty()) check_index_name(options.out);
  const VectorFile queries(options.queries);
  TuneReport tuned;
  IndexInfo info;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    Index index = open_index(options.index, resources);
    const WholeVectors rows(options.queries, resources);
    tuned = index.tune(rows.view(), options.params, resources);
    info = index.info();
    write_index(index, out, resources);
  });

  Report report;
  report.text =
      fmt::format("{} of {} vectors, {} queries, k = {}, metric {}\n{}{}: recall {:.4f} +- {:.4f}, {}\nwrote {}\n",
                  info.factory, info.size, queries.rows(), options.params.k, name_of(info.metric), table_text(tuned),
                  parameters_text(tuned.chosen), tuned.chosen.recall, tuned.chosen.standard_error,
                  tuned.reached ? "the fewest comparisons with the recall"
                                : fmt::format("the highest: none has {}", options.params.recall),
                  out);
  for (const std::string& line : log) report.text += line + "\n";
  std::vector<JsonObject> searches;
  for (const TunedSearch& one : tuned.table.searches) searches.push_back(search_json(one));
  JsonObject result;
  result.object("index", index_json(info)).object("queries", describe_vectors(queries));
  result.number("k", options.params.k).real("recall", options.params.recall).flag("reached", tuned.reached);
  result.object("chosen", search_json(tuned.chosen)).list("searches", std::move(searches)).text("out", out);
  JsonObject memory;
  if (run.memory_limit) memory.number("limit_bytes", *run.memory_limit);
  memory.number("peak_resident_bytes", peak_resident_bytes());
  JsonObject timings;
  timings.real("total_seconds", total.seconds());
  report.json.text("command", "index tune").object("result", std::move(result)).object("memory", std::move(memory));
  report.json.object("timings", std::move(timings)).texts("log", log);
  return report;
}

}  // namespace kith::cli
