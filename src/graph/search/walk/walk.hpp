// A walk over a graph towards a query.
//
// What is found is defined without its arithmetic: the beam holds the best `beam` places whose keys were computed, by
// (key, place). It begins with the entries of the kNearCells cells with the nearest centres, by (key, cell), and with
// the tail. A step opens the `width` nearest places of the beam that were not opened: their neighbours enter it. The
// walk ends when all were opened. With a filter, places that it keeps are collected beside the beam, which walks over
// all.
//
// A walk takes turns with others of its thread, so that one computes while the memory of the others comes: open() asks
// for the codes of the next neighbours, compare() uses them and asks for the next lists.
//
// Time, for 1M rows of 128 bytes and recall 0.95: about 1,200 keys and 50 lists.
// Memory: 8 bytes for each place of the beam, and of what is kept beside it, and the seen places.
#pragma once

#include "core/host_array.hpp"
#include "graph/search/graph/walk_view.hpp"
#include "graph/search/walk/beam.hpp"
#include "graph/search/walk/seen_places.hpp"

#include <cstdint>

namespace kith {

inline constexpr int64_t kWidestBeam = int64_t{1} << 20;
inline constexpr int64_t kWidestStep = 64;

struct WalkWish {
  int64_t beam = 32;
  int64_t width = 2;
  // On a GPU the best so many places that a filter keeps are collected beside the beam, 0: there is no filter; threads
  // look for them in the beam afterwards.
  int64_t kept = 0;
};

class Walk {
 public:
  Walk(const WalkWish& wish, int64_t degree, const Resources& resources);

  // Begins anew; both must outlive the walk.
  void begin(const WalkView& view, const WalkQuery& query);
  // False when the walk has ended; else compare() follows.
  bool open();
  void compare();

  void run(const WalkView& view, const WalkQuery& query) {
    begin(view, query);
    while (open()) compare();
  }

  const Beam& beam() const { return beam_; }
  // Keys that were computed since it began: of centres, of the tail, and of places as often as they were forgotten.
  int64_t compared() const { return compared_; }

 private:
  void collect(const uint32_t* list, int64_t most);
  void offer_all(const uint32_t* places, int64_t count);
  void begin_with_cells();
  void begin_with_tail();

  WalkWish wish_;
  HostArray<uint64_t> beam_memory_;
  HostArray<uint32_t> seen_memory_;
  HostArray<uint32_t> places_;  // to be compared
  HostArray<uint32_t> keys_;
  HostArray<uint32_t> numbers_;  // 0, 1, 2, ...
  int64_t collected_ = 0;
  int64_t compared_ = 0;
  Beam beam_;
  SeenPlaces seen_;
  const WalkView* view_ = nullptr;
  const WalkQuery* query_ = nullptr;
};

}  // namespace kith
