// Graphs and the files of their vectors as work that merges them from disk (ggm_on_disk.hpp).
#pragma once

#include <kith/graph_merge.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/resources.hpp>

#include "graph/build/ggm/ggm_on_disk.hpp"

#include <vector>

namespace kith {

// The parts must outlive it.
ShardWork merge_work(const std::vector<GraphOfFile>& parts, const GraphMergeParams& params);
// Writes files and graphs to its manifest. Goes over the graphs, whose hashes stand there.
void put_parts(const std::vector<GraphOfFile>& parts, WorkManifest& manifest, const Resources& resources);

}  // namespace kith
