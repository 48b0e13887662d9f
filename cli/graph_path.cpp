// kith graph path: the smoothest path between two rows of a graph, or the widths of many pairs.
#include <kith/error.hpp>
#include <kith/host_buffer.hpp>
#include <kith/vector_file.hpp>

#include "graph_commands.hpp"
#include "output_paths.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace kith::cli {
namespace {

void check_question(const GraphPathOptions& options, const GraphPaths& graph) {
  const bool one = options.from != -1 || options.to != -1;
  if (one == !options.pairs.empty()) throw UsageError("give either --from and --to, or --pairs");
  if (one && (options.from == -1 || options.to == -1)) throw UsageError("--from and --to go together");
  if (options.pairs.empty() != options.out_widths.empty()) throw UsageError("--pairs and --out-widths go together");
  if (!options.pairs.empty() && !options.out.empty()) throw UsageError("--out is for the rows of one path");
  std::vector<NamedPath> outputs;
  if (!options.out.empty()) outputs.push_back({"--out", options.out});
  if (!options.out_widths.empty()) outputs.push_back({"--out-widths", options.out_widths});
  std::vector<NamedPath> inputs{{"--ids", graph.ids}, {"--distances", graph.distances}};
  if (!options.pairs.empty()) inputs.push_back({"--pairs", options.pairs});
  check_outputs(outputs, inputs);
}

struct FoundPaths {
  double build_seconds = 0;
  double seconds = 0;
  int64_t rows = 0;
  int64_t parts = 0;
  int64_t pairs = 0;
  int64_t joined = 0;  // pairs that a path joins
  SmoothPath path;
};

void find_path(const GraphPathOptions& options, const SmoothPaths& paths, const Resources& resources,
               FoundPaths& found) {
  const Stopwatch watch;
  found.path = paths.path(options.from, options.to, options.by, resources);
  found.seconds = watch.seconds();
  if (options.out.empty()) return;
  IdFileWriter writer(options.out, found.path.size, 1);
  writer.append(found.path.begin(), found.path.size);
  writer.commit();
}

void find_widths(const GraphPathOptions& options, const IdFile& pairs, const SmoothPaths& paths,
                 const Resources& resources, FoundPaths& found) {
  if (pairs.cols() != 2) {
    throw InvalidArgument(fmt::format("{} has {} columns; a pair of rows has two", options.pairs, pairs.cols()));
  }
  const ReadMemory memory = pairs.reserve_memory(resources);
  const HostArray<int64_t> rows(pairs.rows() * 2, "pairs of rows", resources);
  pairs.read(0, pairs.rows(), rows.data());
  const HostArray<float> widths(pairs.rows(), "widths", resources);
  const Stopwatch watch;
  paths.widths(rows.data(), pairs.rows(), widths.data(), resources);
  found.seconds = watch.seconds();
  found.pairs = pairs.rows();
  for (const float width : widths) found.joined += !std::isinf(width);
  VectorFileWriter writer(options.out_widths, DType::f32, pairs.rows(), 1);
  writer.append(MatrixView(widths.data(), pairs.rows(), 1));
  writer.commit();
}

std::string path_text(const GraphPathOptions& options, const FoundPaths& found) {
  if (found.path.size == 0) {
    return fmt::format("no path joins {} and {}: the graph has {} parts\n", options.from, options.to, found.parts);
  }
  std::string rows;
  for (const int64_t row : found.path) rows += fmt::format("{}{}", rows.empty() ? "" : " ", row);
  return fmt::format("{} steps, the largest {}\n{}\n", found.path.size - 1, found.path.width, rows);
}

}  // namespace

Report run_graph_path(const GraphPathOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const GraphPaths graph = resolved(options.graph, "graph path");
  check_question(options, graph);
  std::optional<IdFile> pairs;
  if (!options.pairs.empty()) pairs.emplace(options.pairs);
  FoundPaths found;
  (void)with_resources(run, [&](const Resources& resources) {
    const Stopwatch build;
    const SmoothPaths paths(load(graph, resources), resources);
    found.build_seconds = build.seconds();
    found.rows = paths.rows();
    found.parts = paths.parts();
    if (pairs) {
      find_widths(options, *pairs, paths, resources, found);
    } else {
      find_path(options, paths, resources, found);
    }
  });

  Report report;
  JsonObject result;
  result.text("ids", graph.ids).text("distances", graph.distances).number("rows", found.rows);
  result.number("parts", found.parts);
  if (pairs) {
    report.text = fmt::format("{} widths in {:.3f} s, {} pairs joined\nwrote {}\n", found.pairs, found.seconds,
                              found.joined, options.out_widths);
    result.number("pairs", found.pairs).number("joined", found.joined).text("out_widths", options.out_widths);
  } else {
    report.text = path_text(options, found);
    if (!options.out.empty()) report.text += fmt::format("wrote {}\n", options.out);
    result.number("from", options.from).number("to", options.to).text("by", name_of(options.by));
    result.flag("joined", found.path.size > 0);
    if (found.path.size > 0) result.real("width", static_cast<double>(found.path.width));
    result.numbers("path", {found.path.begin(), found.path.end()});
    if (!options.out.empty()) result.text("out", options.out);
  }
  JsonObject timings;
  timings.real("build_seconds", found.build_seconds).real("search_seconds", found.seconds);
  timings.real("total_seconds", total.seconds());
  report.json.text("command", "graph path").object("result", std::move(result)).object("timings", std::move(timings));
  return report;
}

}  // namespace kith::cli
