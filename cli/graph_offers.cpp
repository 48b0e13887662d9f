// The commands under `kith graph` and their options.
#include "graph_commands.hpp"

#include <memory>

namespace kith::cli {
namespace {

// A graph in a folder or in files, and the metric, which files do not contain.
void offer_graph_paths(OfferedCommand& command, GraphPaths& paths) {
  command.file("--graph", paths.folder, "Folder that graph build --out has made");
  command.file("--ids", paths.ids, "Instead of --graph, the graph's ids, rows x k: .npy (int64, mapped), .ibin, .ivecs or .hdf5");
  command.file("--distances", paths.distances, "And its distances: .npy or .fbin (mapped), .fvecs or .hdf5");
  command.metric(paths.metric);
}

void offer_graph_outputs(OfferedCommand& command, NeighborPaths& out) {
  command.file("--out-ids", out.ids, "Where ids go: .npy (which can be mapped), .ibin, .ivecs or .hdf5").required();
  command.file("--out-distances", out.distances, "Where distances go: .npy, .fbin, .fvecs or .hdf5").required();
}

template <typename Params>
void offer_recall_and_seed(OfferedCommand& command, Params& params, const char* help) {
  command.real("--recall", params.recall, help);
  command.count("--seed", params.seed, "Seed of the random numbers");
}

template <typename Params>
void offer_descent(OfferedCommand& command, Params& params) {
  command.number("--samples", params.samples, "Of nn_descent and ggm: new and old neighbours that meet in a round, each");
  command.number("--list-length", params.list_length, "Of nn_descent and ggm: neighbours in a working list, at least k");
  command.number("--iterations", params.iterations, "Of nn_descent and ggm: maximum rounds");
  command.real("--delta", params.delta, "Of nn_descent and ggm: end when at most this share of neighbours is new");
}

void offer_graph_build(Commands& graph) {
  const auto options = std::make_shared<GraphBuildOptions>();
  KnnGraphParams& params = options->params;
  OfferedCommand command = graph.offer("build", "Find the k nearest other rows of every row of a file",
                                       [options](const RunOptions& run) { return run_graph_build(*options, run); });
  command.file("--data,--base", options->data, "Vectors, in any format").required();
  command.file("--out", options->folder, "Folder for ids.npy, distances.npy and report.json, which has their hashes");
  command.file("--out-ids", options->out.ids, "Instead of --out, a file for the ids: .npy, .ibin, .ivecs or .hdf5");
  command.file("--out-distances", options->out.distances, "With --out-ids, a file for the distances: .npy, .fbin, .fvecs or .hdf5");
  command.file("--work", options->work.folder,
               "With --out, keep the work of cells, ggm and exact in this folder, and go on there after a kill (OUT/work, where a "
               "memory limit is too small for all rows)");
  command.flag("--keep-work", options->work.keep, "Keep the files in it once the graph is there");
  command.flag("--ids-only", options->work.form.ids_only, "With --out, write no distances.npy");
  command.flag("--int32-ids", options->work.form.int32_ids, "With --out, ids.npy holds int32: half as many bytes");
  command
      .text("--part", options->part,
            "With --out and --method cells: the i-th of n processes that share the work, in folders that all see", "I/N")
      .without_default();
  command.no_flag("--no-wait", options->wait,
                  "With --part: where others must finish first, end with exit code 75 instead of waiting");
  command.number("-k", params.k, "Neighbours per row");
  command.word("--method", params.method, parse_graph_method, "auto",
               "exact; cells, by k-means cells; nn_descent, by neighbours' neighbours; ggm, by the graphs of shards; auto, the "
               "fastest");
  offer_recall_and_seed(command, params, "The share of the true neighbours to find; 1 is exact");
  command.number("--cells", params.cells, "Of cells: how many there are");
  command.number("--probes", params.probes, "Of cells: with how many a row is compared at most");
  command.word("--start", params.start, parse_graph_start, "", "Of nn_descent: random, cells or auto");
  offer_descent(command, params);
  command.number("--shards", params.shards, "Of ggm: in how many shards the rows are cut; memory is that of two");
  command.word("--update", params.update, parse_graph_update, "", "Of nn_descent: selective or all");
  command.metric(params.metric);
  command.check_finite(params.check_finite);
  command.run_options();
  command.on_ranks();
}

void offer_eval_graph(Commands& graph) {
  const auto options = std::make_shared<GraphEvalOptions>();
  OfferedCommand command = graph.offer("eval", "Measure a graph's recall on rows that are searched exactly",
                                       [options](const RunOptions& run) { return run_graph_eval(*options, run); });
  offer_graph_paths(command, options->graph);
  command.file("--data,--base", options->data, "The vectors that it was built of").required();
  command.number("--rows", options->params.rows, "Rows to look at");
  command.count("--seed", options->params.seed, "Seed by which they are drawn");
  command.run_options();
}

void offer_info_graph(Commands& graph) {
  const auto options = std::make_shared<GraphInfoOptions>();
  OfferedCommand command = graph.offer("info", "Check a graph's files and show what they hold",
                                       [options](const RunOptions& run) { return run_graph_info(*options, run); });
  offer_graph_paths(command, options->graph);
  command.threads();
  command.memory_limit();
  command.output();
}

void offer_path(Commands& graph) {
  const auto options = std::make_shared<GraphPathOptions>();
  OfferedCommand command =
      graph.offer("path", "Find the path between two rows whose largest step is as small as it can be",
                  [options](const RunOptions& run) { return run_graph_path(*options, run); });
  offer_graph_paths(command, options->graph);
  command.count("--from", options->from, "Where the path begins", "ROW").without_default();
  command.count("--to", options->to, "Where it ends", "ROW").without_default();
  command.word("--by", options->by, parse_path_by, "steps",
               "Of all such paths: steps, one with the fewest; tree, the spanning tree's");
  command.file("--out", options->out, "Where the path's rows go: a column of ids");
  command.file("--pairs", options->pairs, "In place of one path the widths of many pairs: two columns of ids");
  command.file("--out-widths", options->out_widths, "Where these widths go: a column of f32");
  command.threads();
  command.memory_limit();
  command.output();
}

void offer_labels(Commands& graph) {
  const auto options = std::make_shared<GraphLabelsOptions>();
  OfferedCommand command = graph.offer("labels", "Number the sets of rows that edges up to a height join: single linkage",
                                       [options](const RunOptions& run) { return run_graph_labels(*options, run); });
  offer_graph_paths(command, options->graph);
  command.real("--height", options->height, "The longest edge that joins, in the metric's unit").required();
  command.file("--out", options->out, "Where the number of each row's set goes: a column of ids").required();
  command.threads();
  command.memory_limit();
  command.output();
}

// Options for output to a folder, if the inputs are folders, or to two files.
template <typename Options>
void offer_folder_outputs(OfferedCommand& command, Options& options) {
  command.file("--out", options.folder, "With --graph, folder for ids.npy, distances.npy and report.json");
  command.file("--out-ids", options.out.ids, "Where ids go: .npy (which can be mapped), .ibin, .ivecs or .hdf5");
  command.file("--out-distances", options.out.distances, "Where distances go: .npy, .fbin, .fvecs or .hdf5");
  command.file("--work", options.work.folder, "With --out, folder for work that does not fit in memory (OUT/work)");
  command.flag("--keep-work", options.work.keep, "Keep the files in it once the graph is there");
}

// Options of all commands that make graphs from graphs.
template <typename Options>
void offer_merging(OfferedCommand& command, Options& options,
                   const char* recall = "The share of the true neighbours to find, below 1") {
  offer_recall_and_seed(command, options.params, recall);
  offer_descent(command, options.params);
  command.no_flag("--no-check-finite", options.params.check_finite, "Do not look for NaN and infinities");
  command.run_options();
}

void offer_graph_merge(Commands& graph) {
  const auto options = std::make_shared<GraphMergeOptions>();
  OfferedCommand command = graph.offer("merge", "Make the graph of several sets from the graph of each",
                                       [options](const RunOptions& run) { return run_graph_merge(*options, run); });
  command.files("--graph", options->graphs, "Folders of graphs, with --out; parts that do not fit a limit are merged from disk");
  command.files("--ids", options->ids, "Instead of --graph, the graphs' ids");
  command.files("--distances", options->distances, "And their distances, in the same order");
  command.files("--data,--base", options->data, "The vectors that they were built of, in the same order").required();
  command.metric(options->metric);
  offer_folder_outputs(command, *options);
  offer_merging(command, *options);
}

void offer_extend(Commands& graph) {
  const auto options = std::make_shared<GraphExtendOptions>();
  OfferedCommand command = graph.offer("extend", "Add vectors to a graph",
                                       [options](const RunOptions& run) { return run_graph_extend(*options, run); });
  command.file("--graph", options->graph_folder, "Folder of the graph, with --out; few new vectors join it under any limit");
  command.file("--ids", options->graph.ids, "Instead of --graph, the graph's ids: .npy, .ibin, .ivecs or .hdf5");
  command.file("--distances", options->graph.distances, "And its distances: .npy, .fbin, .fvecs or .hdf5");
  command.metric(options->graph.metric);
  command.file("--data,--base", options->data, "The vectors that it was built of").required();
  command.file("--new", options->fresh, "The vectors to add").required();
  offer_folder_outputs(command, *options);
  offer_merging(command, *options, "The share of the true neighbours to find; 1 compares new vectors with all");
}

void offer_refine(Commands& graph) {
  const auto options = std::make_shared<GraphRefineOptions>();
  OfferedCommand command = graph.offer("refine", "Find more of the true neighbours of a graph's rows",
                                       [options](const RunOptions& run) { return run_graph_refine(*options, run); });
  offer_graph_paths(command, options->graph);
  command.file("--data,--base", options->data, "The vectors that it was built of").required();
  offer_graph_outputs(command, options->out);
  offer_merging(command, *options);
}

}  // namespace

void offer_graph(Commands& commands) {
  Commands graph = commands.group("graph", "Build, join, measure and walk on a k-NN graph");
  offer_graph_build(graph);
  offer_eval_graph(graph);
  offer_info_graph(graph);
  offer_path(graph);
  offer_labels(graph);
  offer_graph_merge(graph);
  offer_extend(graph);
  offer_refine(graph);
}

}  // namespace kith::cli
