// Shards that are merged from disk (ggm_on_disk.hpp): consecutive rows of one file, or files whose graphs are given.
#pragma once

#include <kith/graph_merge.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/graph_report.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "io/work_manifest.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kith {

// Rows and, if known, their graph, with ids relative to the first row.
struct DiskShard {
  VectorFile x;
  std::optional<KnnGraph> graph;
};

// Shards and how to build and merge their graphs. All have the same columns, dtype, metric and k.
struct ShardWork {
  std::vector<DiskShard> shards;
  KnnGraphParams graphs;  // for shards that have no graph yet
  GraphMergeParams merges;
  WorkManifest manifest;
  std::vector<std::string> names = {};  // of shards whose graphs are given, in errors; x1, x2, ... if there are none
  std::function<void(GraphReport&)> put_method;  // writes the method's name and parameters to the report
};

// The shards of a file for these parameters (ggm_shards.hpp).
ShardWork ggm_work(const VectorFile& x, const KnnGraphParams& params);
// Graphs and the files of their vectors. The parts must outlive it.
ShardWork merge_work(const std::vector<GraphOfFile>& parts, const GraphMergeParams& params);
// Writes files and graphs to its manifest. Goes over the graphs, whose hashes stand there.
void put_parts(const std::vector<GraphOfFile>& parts, WorkManifest& manifest, const Resources& resources);

}  // namespace kith
