// Chooses a place's neighbours among candidates (Vamana's rule; Jayaram Subramanya et al., "DiskANN", 2019).
//
// Candidates c are visited nearest first, by (key, place). One is dropped if a kept one s is in between: if
// alpha^2 key(s, c) < key(place, c), where keys are squared. Others are kept, up to the degree. alpha depends on the
// degree: 1.0 up to 32, 1.1 up to 48, 1.2 above (measured on SIFT1M: 1.2 with 32 needs 1.5 to 1.7 times the comparisons
// of 1.0). Both sides are products of a key and a small integer, which are exact in float64.
//
// Time: for each kept candidate, its keys to the remaining ones. Memory: 20 bytes per candidate.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/search/build/prune_rule.hpp"
#include "graph/search/graph/walk_rows.hpp"

#include <cstdint>

namespace kith {

// For use by one thread.
class Pruner {
 public:
  Pruner(const WalkRows& rows, int64_t degree, int64_t most_candidates, const Resources& resources);

  // `candidates`: pack_neighbor(key, place) of other places, ascending, without duplicates. Moves the kept ones to the
  // front, in order, and returns their number.
  int64_t prune(uint64_t* candidates, int64_t count);

  // Writes pack_neighbor(key, other) for each of `others`, ascending.
  void sort_by_key(uint32_t place, const uint32_t* others, int64_t count, uint64_t* sorted);

 private:
  const WalkRows& rows_;
  const int64_t degree_;
  const PruneRatio ratio_;
  HostArray<uint32_t> places_;
  HostArray<uint32_t> keys_;
  HostArray<uint64_t> left_;
  HostArray<float> floats_;
};

}  // namespace kith
