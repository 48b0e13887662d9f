// A search graph (walk.hpp) with everything that a walk needs: codes, lists, cells and the rows at each place.
// Immutable; a graph made from another shares unchanged parts with it.
//
// Memory per row: its code (walk_coder.hpp), 4 x degree bytes of neighbours, and 8 for its place.
#pragma once

#include <kith/resources.hpp>

#include "core/growing_array.hpp"
#include "graph/search/graph/place_order.hpp"
#include "graph/search/graph/walk_coder.hpp"
#include "graph/search/graph/walk_lists.hpp"
#include "graph/search/graph/walk_view.hpp"
#include "kernels/distance/packed_byte_rows.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kith {

inline constexpr int64_t kDegreeStep = 16;
inline constexpr int64_t kMostDegree = 128;

struct WalkGraphCounts {
  int64_t clipped = 0;  // number of clipped values of rows
  int64_t parts = 0;    // connected components, with edges in both directions
  int64_t lost = 0;     // places not found by a small walk to them
};

// Centres as walks rank them in little time; null if they are no codes, or this processor does not rank them so.
std::shared_ptr<const PackedByteRows> packed_centres(const WalkRows& centres, const Resources& resources);

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
  WalkGraphCounts counts;
  std::shared_ptr<const PackedByteRows> packed_centres;

  int64_t rows() const { return order.row_count(); }
  int64_t bytes() const {
    return order.bytes() + codes.bytes() + edges.bytes() + centres.bytes() + entry_offsets.bytes() + entries.bytes() +
           (packed_centres == nullptr ? 0 : packed_centres->bytes());
  }
  // Includes the codes of that many rows added later.
  WalkView view(const std::byte* tail, int64_t tail_rows) const {
    WalkView view;
    view.rows = coder.rows_of(codes.data(), order.places());
    view.tail = coder.rows_of(tail, tail_rows);
    edges.show_in(view);
    view.centres = coder.centres_of(centres.data(), cells);
    view.packed_centres = packed_centres.get();
    view.entry_offsets = entry_offsets.data();
    view.entries = entries.data();
    return view;
  }
};

}  // namespace kith
