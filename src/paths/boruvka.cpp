#include "paths/boruvka.hpp"

#include "core/parallel_for.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kith {

MergeTree boruvka(BoruvkaBackend& backend, int64_t rows, const Resources& resources) {
  std::vector<MergeLevel> levels;
  int64_t parts = rows;
  int64_t done = 0;
  ProgressMeter meter("join rows", parts, resources);
  while (parts > 0) {
    MergeLevel level(parts, resources);
    backend.find_least_edges(level);
    const int64_t joined = backend.join(level);
    done += std::count(level.key.begin(), level.key.end(), kNoEdge);
    if (joined > 0) levels.push_back(std::move(level));  // else nothing leaves any
    meter.add(parts - joined);
    meter.poll();
    parts = joined;
  }
  meter.finish();
  return {rows, std::move(levels), done};
}

MergeTree boruvka(const EdgeLists& edges, const Resources& resources) {
  return boruvka(*make_boruvka_cpu(edges, resources), edges.rows(), resources);
}

}  // namespace kith
