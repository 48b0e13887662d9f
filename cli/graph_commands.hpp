// kith graph: building, inspecting, measuring and using the k-NN graph of a file of vectors. A graph is stored in a
// folder or as a pair of files, ids and distances.
#pragma once

#include <kith/graph_folder.hpp>
#include <kith/graph_merge.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/graph_recall.hpp>
#include <kith/graph_report.hpp>
#include <kith/knn_graph.hpp>
#include <kith/smooth_paths.hpp>

#include "commands.hpp"
#include "json_output.hpp"
#include "neighbor_files.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kith::cli {

struct GraphBuildOptions {
  std::string data;
  std::string folder;  // or
  NeighborPaths out;   // both
  GraphWork work;      // with a folder
  std::string part;    // "1/4": the part of the graph to build; empty: all
  bool wait = true;
  KnnGraphParams params;
};
Report run_graph_build(const GraphBuildOptions& options, const RunOptions& run);
// UsageError unless either the folder or both files are named; `ways` says how.
void check_folder_or_files(const std::string& folder, const std::string& ids, const std::string& distances,
                           std::string_view command, std::string_view ways);
JsonObject hashes_json(const GraphHashes& hashes);
std::string hashes_text(const GraphHashes& hashes);  // a line

// A graph in a folder, which knows its metric, or in two files.
struct GraphPaths {
  std::string folder;
  std::string ids;
  std::string distances;
  Metric metric = Metric::l2;
};
// UsageError unless one or the other is named. With the files of the folder, and its metric.
GraphPaths resolved(const GraphPaths& paths, std::string_view command);
KnnGraph load(const GraphPaths& resolved, const Resources& resources);

struct GraphEvalOptions {
  GraphPaths graph;
  std::string data;
  GraphRecallParams params;
};
Report run_graph_eval(const GraphEvalOptions& options, const RunOptions& run);

struct GraphInfoOptions {
  GraphPaths graph;
};
Report run_graph_info(const GraphInfoOptions& options, const RunOptions& run);

struct GraphPathOptions {
  GraphPaths graph;
  int64_t from = -1;  // -1: not given
  int64_t to = -1;
  PathBy by = PathBy::steps;
  std::string out;         // empty: printed alone
  std::string pairs;       // in place of from and to
  std::string out_widths;  // where their widths go
};
Report run_graph_path(const GraphPathOptions& options, const RunOptions& run);

struct GraphLabelsOptions {
  GraphPaths graph;
  double height = 0;
  std::string out;
};
Report run_graph_labels(const GraphLabelsOptions& options, const RunOptions& run);

// Several graphs and their vectors, in the same order.
struct GraphMergeOptions {
  std::vector<std::string> graphs;  // folders, or
  std::vector<std::string> ids;
  std::vector<std::string> distances;
  std::vector<std::string> data;
  Metric metric = Metric::l2;
  std::string folder;  // of graphs in folders, or
  NeighborPaths out;   // both
  GraphWork work;      // with a folder
  GraphMergeParams params;
};
Report run_graph_merge(const GraphMergeOptions& options, const RunOptions& run);

struct GraphExtendOptions {
  std::string graph_folder;  // or
  GraphPaths graph;
  std::string data;
  std::string fresh;   // the vectors to add
  std::string folder;  // of a graph in a folder, or
  NeighborPaths out;   // both
  GraphWork work;      // with a folder
  GraphMergeParams params;
};
Report run_graph_extend(const GraphExtendOptions& options, const RunOptions& run);

struct GraphRefineOptions {
  GraphPaths graph;
  std::string data;
  NeighborPaths out;  // both
  GraphMergeParams params;
};
Report run_graph_refine(const GraphRefineOptions& options, const RunOptions& run);

// How a graph was made, as text and as JSON.
std::string report_text(const GraphReport& report);
JsonObject report_json(const GraphReport& report);

// Offers all of these commands.
void offer_graph(Commands& commands);

}  // namespace kith::cli
