// GGM (ggm_shards.hpp) of vectors that are read from files, with steps kept in a work folder: the bytes of memory with the
// same shards, under any limit that has room for two of them, after any number of kills.
//
//   graph-3     the graph of shard 3, and the hashes of its rows, which are verified whenever they are read again
//   lists-3     the nearest of its rows so far, in all shards that it was merged with
//   pair-3-5    both shards' lists have what their merged graph found: written last, so that a pair that was not finished is
//               merged again; offers that come twice change nothing
//
// Reads: the rows of shard i for its graph, and once for each pair with a shard behind it. Disk: 8 k bytes a row for
// graphs, and the same for lists. Writes: 8 k bytes a row of both shards for each pair.
#pragma once

#include <kith/graph_merge.hpp>
#include <kith/graph_report.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "core/footprint.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "io/work_folder.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace kith {

// Rows and, where it is known, their graph, whose ids count from the first of them.
struct DiskShard {
  VectorFile x;
  std::optional<KnnGraph> graph;
};

// What is made of shards. They have the same columns and dtype, and graphs of k neighbours by this metric.
struct ShardWork {
  std::vector<DiskShard> shards;
  KnnGraphParams graphs;    // of those that have none
  GraphMergeParams merges;
  WorkManifest manifest;
  std::function<void(GraphReport&)> put_method;  // and parameters
};
GraphReport merge_on_disk(const ShardWork& work, const DiskWork& disk, GraphSink& sink, const Resources& resources);
// What that needs at least.
Footprint merge_on_disk_footprint(const ShardWork& work, const Resources& resources);

// By what graphs are merged.
void put_merge_params(const GraphMergeParams& params, WorkManifest& manifest);

// The shards that parameters ask for.
ShardWork ggm_work(const VectorFile& x, const KnnGraphParams& params);

}  // namespace kith
