// A walk over a graph towards a query.
//
// The result is defined independently of arithmetic: the beam holds the best `beam` places whose keys were computed, by
// (key, place). It starts with the entries of the kNearCells cells with the nearest centres, by (key, cell), and with
// the tail. A step opens the `width` nearest unopened places of the beam: their neighbours are offered to it. The walk
// ends when all of the beam is opened. With a filter, places that the filter keeps are collected separately; the beam
// itself is not filtered.
//
// The walks of a thread take turns, so that one computes while others wait for memory: open() prefetches the codes of
// the next neighbours, compare() uses them and prefetches the next lists.
//
// Time, for 1M rows of 128 bytes and recall 0.95: about 1,200 keys and 50 lists.
// Memory: 8 bytes per place of the beam and per collected place, and the table of seen places.
#pragma once

#include "core/host_array.hpp"
#include "graph/search/graph/walk_view.hpp"
#include "graph/search/walk/beam.hpp"
#include "graph/search/walk/seen_places.hpp"

#include <cstdint>

namespace kith {

inline constexpr int64_t kWidestBeam = int64_t{1} << 20;
inline constexpr int64_t kWidestStep = 64;

struct WalkParams {
  int64_t beam = 32;
  int64_t width = 2;
  // On a GPU the best so many places that a filter keeps are collected beside the beam, 0: there is no filter; threads
  // look for them in the beam afterwards.
  int64_t kept = 0;
};

class Walk {
 public:
  Walk(const WalkParams& params, int64_t degree, const Resources& resources);

  // Starts over; both must outlive the walk.
  void begin(const WalkView& view, const WalkQuery& query);
  // False when the walk has ended; otherwise call compare() next.
  bool open();
  void compare();

  void run(const WalkView& view, const WalkQuery& query) {
    begin(view, query);
    while (open()) compare();
  }

  const Beam& beam() const { return beam_; }
  // Keys computed since the start: of centres, the tail and places, repeated ones included.
  int64_t compared() const { return compared_; }

 private:
  void collect(const uint32_t* list, int64_t most);
  void offer_all(const uint32_t* places, int64_t count);
  void begin_with_cells();
  void rank_centres(int64_t first, int64_t count);
  void begin_with_tail();

  WalkParams params_;
  HostArray<uint64_t> beam_memory_;
  HostArray<uint32_t> memory_;  // one array: short searches notice each allocation
  uint32_t* places_;            // to compare next
  uint32_t* keys_;
  int64_t collected_ = 0;
  int64_t compared_ = 0;
  Beam beam_;
  SeenPlaces seen_;
  const WalkView* view_ = nullptr;
  const WalkQuery* query_ = nullptr;
};

}  // namespace kith
