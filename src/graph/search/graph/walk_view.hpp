// A graph that is walked, as a walk sees it: plain arrays in host memory.
//
// Places 0 .. rows.count() - 1 have a list of neighbours each; those behind them, the tail, are in no list and have
// none: rows that came after the graph was built, and are compared with every query. A walk begins with the entries of
// the cells whose centres are nearest.
#pragma once

#include "graph/search/graph/walk_rows.hpp"
#include "rows/kept_rows.hpp"

#include <cstdint>

namespace kith {

class PackedByteRows;

inline constexpr uint32_t kNoEdge = 0xFFFFFFFFU;  // behind the last neighbour of a list
inline constexpr int64_t kNearCells = 8;          // whose entries begin the beam
inline constexpr int64_t kPageLists = 64;         // lists of a page (walk_lists.hpp)

struct WalkView {
  WalkRows rows;
  WalkRows tail;
  const uint32_t* edges = nullptr;         // rows x degree, where all lists lie together
  const uint32_t* const* pages = nullptr;  // else where each page of kPageLists lists lies
  int64_t degree = 0;
  WalkRows centres;
  const PackedByteRows* packed_centres = nullptr;  // the same; may be null
  const uint32_t* entry_offsets = nullptr;  // centres + 1
  const uint32_t* entries = nullptr;

  int64_t places() const { return rows.count() + tail.count(); }
  const uint32_t* list_of(uint32_t place) const {
    if (edges != nullptr) return edges + static_cast<int64_t>(place) * degree;
    return pages[place / kPageLists] + static_cast<int64_t>(place % kPageLists) * degree;
  }
};

// Which rows lie at a place: those that look alike. The i-th place of the tail has row graph_rows + i.
struct PlaceRows {
  const uint32_t* offsets = nullptr;  // places of the graph + 1
  const uint32_t* rows = nullptr;     // ascending at each place
  int64_t places = 0;
  int64_t graph_rows = 0;

  // Ask for the memory that visit() reads first and then.
  void prefetch_offset(uint32_t place) const {
    if (place < places) __builtin_prefetch(offsets + place);
  }
  void prefetch_row(uint32_t place) const {
    if (place < places) __builtin_prefetch(rows + offsets[place]);
  }

  // Calls use(row) for each, ascending.
  template <typename Use>
  void visit(uint32_t place, const Use& use) const {
    if (place >= places) return use(static_cast<uint32_t>(graph_rows + place - places));
    for (uint32_t i = offsets[place]; i < offsets[place + 1]; ++i) use(rows[i]);
  }
};

// The places that a filter keeps: with a row that it keeps.
struct PlaceFilter {
  const uint64_t* bits = nullptr;  // of rows
  PlaceRows rows;

  bool keeps(uint32_t place) const {
    bool kept = false;
    rows.visit(place, [&](uint32_t row) { kept = kept || kith::keeps(bits, row); });
    return kept;
  }
};

}  // namespace kith
