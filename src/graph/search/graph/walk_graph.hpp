// A graph for walks (walk.hpp), with all that it needs: codes, lists, cells and the rows at each place. Immutable; one
// that grew out of another shares what has not changed with it.
//
// Memory of a row: its code (walk_coder.hpp), 4 x degree bytes of neighbours, and 8 for its place.
#pragma once

#include <kith/resources.hpp>

#include "core/growing_array.hpp"
#include "graph/search/graph/place_order.hpp"
#include "graph/search/graph/walk_coder.hpp"
#include "graph/search/graph/walk_lists.hpp"
#include "graph/search/graph/walk_view.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

inline constexpr int64_t kDegreeStep = 16;
inline constexpr int64_t kMostDegree = 128;

struct WalkFacts {
  int64_t clipped = 0;  // values of rows that codes do not reach
  int64_t parts = 0;    // connected, taking edges both ways
  int64_t lost = 0;     // places that a small walk towards them does not find
};

struct WalkGraph {
  WalkCoder coder;
  int64_t degree;
  PlaceOrder order;
  GrowingArray<std::byte> codes;
  WalkLists edges;
  int64_t cells;
  GrowingArray<std::byte> centres;
  GrowingArray<uint32_t> entry_offsets;
  GrowingArray<uint32_t> entries;
  WalkFacts facts;

  int64_t rows() const { return order.row_count(); }
  int64_t bytes() const {
    return order.bytes() + codes.bytes() + edges.bytes() + centres.bytes() + entry_offsets.bytes() + entries.bytes();
  }
  // With codes of so many rows that came later.
  WalkView view(const std::byte* tail, int64_t tail_rows) const {
    WalkView view;
    view.rows = coder.rows_of(codes.data(), order.places());
    view.tail = coder.rows_of(tail, tail_rows);
    edges.show_in(view);
    view.centres = coder.centres_of(centres.data(), cells);
    view.entry_offsets = entry_offsets.data();
    view.entries = entries.data();
    return view;
  }
};

}  // namespace kith
