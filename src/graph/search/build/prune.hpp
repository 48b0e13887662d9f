// Which of a place's candidates become its neighbours (Vamana's rule; Jayaram Subramanya et al., "DiskANN", 2019).
//
// Candidates are looked at nearest first, by (key, place). One is dropped if a kept one s lies between: if
// alpha^2 key(s, c) < key(place, c), keys being squares. Others are kept, up to the degree. alpha follows from the
// degree: 1.0 up to 32, 1.1 up to 48, 1.2 above (measured on SIFT1M: 1.2 with 32 needs 1.5 to 1.7 times the comparisons
// of 1.0). Both sides are products of a key with a small whole number, which float64 holds exactly.
//
// Time: for each kept one its keys with the candidates that are left. Memory: 20 bytes a candidate.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/search/build/prune_rule.hpp"
#include "graph/search/graph/walk_rows.hpp"

#include <cstdint>

namespace kith {

// For one thread.
class Pruner {
 public:
  Pruner(const WalkRows& rows, int64_t degree, int64_t most_candidates, const Resources& resources);

  // `candidates`: pack_neighbor(key, place) of other places, ascending, none twice. Returns how many were kept; they
  // are moved to the front, in their order.
  int64_t prune(uint64_t* candidates, int64_t count);

  // pack_neighbor(key, other) for each of `others`, ascending.
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
