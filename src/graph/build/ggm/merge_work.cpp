#include "graph/build/ggm/merge_work.hpp"

#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/handle/graph_folder.hpp"
#include "io/row_slice.hpp"

#include <fmt/format.h>

namespace kith {

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
