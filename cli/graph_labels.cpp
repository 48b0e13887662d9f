// kith graph labels: the sets of rows connected by edges up to a height, which is single linkage cut there.
#include <kith/spanning_tree.hpp>
#include <kith/vector_file.hpp>

#include "graph_commands.hpp"
#include "output_paths.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <utility>

namespace kith::cli {

Report run_graph_labels(const GraphLabelsOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const GraphPaths paths = resolved(options.graph, "graph labels");
  check_outputs({{"--out", options.out}}, {{"--ids", paths.ids}, {"--distances", paths.distances}});
  RowLabels labels;
  with_resources(run, [&](const Resources& resources) {
    const KnnGraph graph = load(paths, resources);
    labels = spanning_tree(graph, {.unconnected = Unconnected::at_inf}, resources).labels(options.height, resources);
    IdFileWriter writer(options.out, labels.rows, 1);
    writer.append(labels.begin(), labels.rows);
    writer.commit();
  });
  Report report;
  report.text = fmt::format("{} rows in {} sets, joined by edges up to {}\nwrote {}\n", labels.rows, labels.sets,
                            options.height, options.out);
  JsonObject result;
  result.text("ids", paths.ids).text("distances", paths.distances).real("height", options.height);
  result.number("rows", labels.rows).number("sets", labels.sets).text("out", options.out);
  JsonObject timings;
  timings.real("total_seconds", total.seconds());
  report.json.text("command", "graph labels").object("result", std::move(result)).object("timings", std::move(timings));
  return report;
}

}  // namespace kith::cli
