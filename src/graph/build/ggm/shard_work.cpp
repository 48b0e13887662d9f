#include "graph/build/ggm/shard_work.hpp"

#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/build/ggm/ggm_shards.hpp"
#include "graph/handle/graph_folder.hpp"
#include "io/row_slice.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace kith {
namespace {

void put_merge_params(const GraphMergeParams& params, WorkManifest& manifest) {
  manifest.set("recall", fmt::format("{}", params.recall));
  manifest.set("seed", fmt::format("{}", params.seed));
  if (params.samples) manifest.set("samples", *params.samples);
  if (params.list_length) manifest.set("list_length", *params.list_length);
  if (params.iterations) manifest.set("iterations", *params.iterations);
  if (params.delta) manifest.set("delta", fmt::format("{}", *params.delta));
}

}  // namespace

ShardWork ggm_work(const VectorFile& x, const KnnGraphParams& params) {
  const GgmShards shards(x.rows(), params);
  ShardWork work;
  work.graphs = shard_params(params);
  work.merges = shard_merge_params(params);
  work.put_method = [params, shards](GraphReport& report) { put_ggm(params, shards, report); };
  for (int64_t shard = 0; shard < shards.count; ++shard) {
    work.shards.push_back(DiskShard{slice_of(x, shards.first(shard), shards.size(shard)), std::nullopt});
  }
  WorkManifest& manifest = work.manifest;
  manifest.set("work", "a graph by ggm");
  put_source(x, manifest);
  manifest.set("k", params.k);
  manifest.set("metric", name_of(params.metric));
  manifest.set("shards", shards.count);
  put_merge_params(work.merges, manifest);
  return work;
}

ShardWork merge_work(const std::vector<GraphOfFile>& parts, const GraphMergeParams& params) {
  ShardWork work;
  work.graphs.k = parts[0].graph.k();
  work.graphs.metric = parts[0].graph.metric();
  work.merges = params;
  work.manifest.set("work", "a merge of graphs");
  work.manifest.set("k", work.graphs.k);
  work.manifest.set("metric", name_of(work.graphs.metric));
  for (const GraphOfFile& part : parts) work.shards.push_back({slice_of(part.x, 0, part.x.rows()), part.graph});
  put_merge_params(params, work.manifest);
  const auto count = static_cast<int64_t>(parts.size());
  work.put_method = [params, count](GraphReport& report) {
    report.method = "merge";
    report.parameters = {{"recall", params.recall}, {"parts", count}};
  };
  return work;
}

void put_parts(const std::vector<GraphOfFile>& parts, WorkManifest& manifest, const Resources& resources) {
  for (size_t i = 0; i < parts.size(); ++i) {
    put_source(parts[i].x, manifest, fmt::format(" of part {}", i + 1));
    const GraphHashes hashes = hash_graph(parts[i].graph, resources.with_progress({}));
    manifest.set(fmt::format("graph of part {}", i + 1), fmt::format("{:016x} {:016x}", hashes.ids, hashes.distances));
  }
}

}  // namespace kith
