// GGM, Section 5 of "Large-scale approximate k-NN graph construction on GPU": rows are split into shards, the graph of
// each is built by NN-Descent, and every pair of graphs is merged once (graph_merge.hpp); the results of the pairs are
// combined by (distance, row). From disk, memory is that of two shards.
//
// Shards depend on the parameters, rows and k, not on memory: so the graph does not depend on memory either.
#pragma once

#include <kith/graph_merge.hpp>
#include <kith/knn_graph.hpp>

#include <algorithm>
#include <cstdint>

namespace kith {

// Shards of consecutive rows, of equal size.
struct GgmShards {
  int64_t rows = 0;
  int64_t count = 1;

  GgmShards(int64_t all_rows, const KnnGraphParams& params);
  int64_t first(int64_t shard) const { return rows / count * shard + std::min(shard, rows % count); }
  int64_t size(int64_t shard) const { return first(shard + 1) - first(shard); }
};

// Parameters for building the graph of a shard and merging two, once their rows have been checked to be finite.
KnnGraphParams shard_params(const KnnGraphParams& params);
GraphMergeParams shard_merge_params(const KnnGraphParams& params);

// Writes the method's name and parameters to the report, replacing those of merging.
void put_ggm(const KnnGraphParams& params, const GgmShards& shards, GraphReport& report);

// Builds into `out`, in memory. Devices share the shards, then the pairs. A rejected row is reported as one of "base".
GraphReport ggm_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                      const Resources& resources);

}  // namespace kith
