// GGM (ggm_shards.hpp) of vectors in files, with steps kept in a work folder: the same result as in memory with the
// same shards, under any limit that has room for the graph of one of them, after any number of kills. Graphs that are
// given are merged under any limit: two that have no room in memory are merged from disk (descent_on_disk.hpp).
//
//   graph-3     the graph of shard 3, and the hashes of its rows, which are verified when they are read again, but for
//               rows that are gathered for a merge from disk: those are verified when the process starts
//   lists-3     the nearest neighbours of its rows so far, over all shards merged with it
//   join-3-5-…  the merge of these two, where it is made from disk
//   pair-3-5    marks that both shards' lists include their merged graph: written last, so that an unfinished pair is
//               merged again; repeating offers changes nothing
//
// Reads: the rows of shard i for its graph, and once for each pair with a later shard. Disk: 8 k bytes per row for
// graphs, and the same for lists. Writes: 8 k bytes per row of both shards for each pair.
#pragma once

#include <kith/graph_report.hpp>
#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "graph/build/ggm/shard_work.hpp"

#include <cstdint>

namespace kith {

GraphReport merge_on_disk(const ShardWork& work, const DiskWork& disk, GraphSink& sink, const Resources& resources);
// The least memory of merge_on_disk(). `most_rows`: those of the disk's work.
Footprint merge_on_disk_footprint(const ShardWork& work, const Resources& resources, int64_t most_rows = INT64_MAX);

}  // namespace kith
