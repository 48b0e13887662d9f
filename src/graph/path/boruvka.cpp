#include "graph/path/boruvka.hpp"

#include "core/parallel_for.hpp"

#include <utility>
#include <vector>

namespace kith {

MergeTree boruvka(const EdgeLists& edges, const Resources& resources) {
  const std::unique_ptr<BoruvkaBackend> backend = make_boruvka_cpu(edges, resources);
  std::vector<MergeLevel> levels;
  int64_t parts = edges.rows();
  ProgressMeter meter("join rows", parts, resources);
  for (;;) {
    MergeLevel level(parts, resources);
    backend->find_least_edges(level);
    const int64_t joined = backend->join(level);
    if (joined == parts) break;  // no edge leaves any
    levels.push_back(std::move(level));
    meter.add(parts - joined);
    meter.poll();
    parts = joined;
  }
  meter.finish();
  return {edges.rows(), std::move(levels), parts};
}

}  // namespace kith
