#include "graph/search/build/prune.hpp"

#include "core/ordered_key.hpp"

#include <algorithm>

namespace kith {

PruneRatio prune_ratio(int64_t degree, bool keys_are_squares) {
  if (degree <= 32) return {1, 1};
  if (degree <= 48) return keys_are_squares ? PruneRatio{121, 100} : PruneRatio{11, 10};
  return keys_are_squares ? PruneRatio{36, 25} : PruneRatio{6, 5};
}

Pruner::Pruner(const WalkRows& rows, int64_t degree, int64_t most_candidates, const Resources& resources)
    : rows_(rows),
      degree_(degree),
      ratio_(prune_ratio(degree, keys_are_squares(rows))),
      places_(most_candidates, "candidates for neighbours", resources),
      keys_(most_candidates, "candidates for neighbours", resources),
      left_(most_candidates, "candidates for neighbours", resources),
      floats_(rows.values.cols(), "candidates for neighbours", resources) {}

void Pruner::sort_by_key(uint32_t place, const uint32_t* others, int64_t count, uint64_t* sorted) {
  walk_keys(rows_, query_of_place(rows_, place, floats_.data()), others, count, keys_.data());
  for (int64_t i = 0; i < count; ++i) sorted[i] = pack_neighbor(keys_[i], others[i]);
  std::sort(sorted, sorted + count);
}

int64_t Pruner::prune(uint64_t* candidates, int64_t count) {
  std::copy_n(candidates, count, left_.begin());
  int64_t kept = 0;
  for (int64_t left = count; left > 0 && kept < degree_;) {
    const uint64_t nearest = left_[0];
    candidates[kept++] = nearest;
    if (kept == degree_) break;
    --left;
    for (int64_t i = 0; i < left; ++i) places_[i] = row_of(left_[i + 1]);
    walk_keys(rows_, query_of_place(rows_, row_of(nearest), floats_.data()), places_.data(), left, keys_.data());
    int64_t stay = 0;
    for (int64_t i = 0; i < left; ++i) {
      const uint64_t candidate = left_[i + 1];
      const double between = value_of_key(rows_.kind, keys_[i]);
      if (!ratio_.drops(between, value_of_key(rows_.kind, ordered_of(candidate)))) left_[stay++] = candidate;
    }
    left = stay;
  }
  return kept;
}

}  // namespace kith
