// GGM, Section 5 of "Large-scale approximate k-NN graph construction on GPU": rows are cut into shards, the graph of each
// is made by NN-Descent, and every two graphs are merged once (graph_merge.hpp); what pairs find is put together by
// (distance, row). From disk memory is that of two shards.
//
// Shards follow from parameters, rows and k, never from memory: so the graph does too.
#pragma once

#include <kith/graph_merge.hpp>
#include <kith/knn_graph.hpp>

#include <algorithm>
#include <cstdint>

namespace kith {

// Consecutive rows, as many in each shard.
struct GgmShards {
  int64_t rows = 0;
  int64_t count = 1;

  GgmShards(int64_t all_rows, const KnnGraphParams& params);
  int64_t first(int64_t shard) const { return rows / count * shard + std::min(shard, rows % count); }
  int64_t size(int64_t shard) const { return first(shard + 1) - first(shard); }
};

// By which the graph of a shard is made, and two of them are merged, once their rows are known to be numbers.
KnnGraphParams shard_params(const KnnGraphParams& params);
GraphMergeParams shard_merge_params(const KnnGraphParams& params);

// The method's name and parameters, in the place of what merging has told.
void put_ggm(const KnnGraphParams& params, const GgmShards& shards, GraphReport& report);

// Fills `out`, in memory. Several devices are dealt shards, and then pairs of them. A row that is refused is one of "base".
GraphReport ggm_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                      const Resources& resources);

}  // namespace kith
