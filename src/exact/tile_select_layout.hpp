// The memory of the direct engine's selection (tile_select_cuda.hpp). Pure arithmetic, for plans too.
#pragma once

#include "core/host_array.hpp"
#include "cuda/workspace_layout.hpp"
#include "kernels/select/select_plan.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// The most that a tile has.
struct TileSelectShape {
  int64_t queries = 0;
  int64_t rows = 0;
  int64_t k = 0;  // 0: lists are kept instead
  int multiprocessors = 0;

  bool suits() const { return k > 0 && k <= kFilterLargestK; }
};

struct TileSelectLayout : WorkspaceLayout {
  Slot<float> keys;        // queries x k
  Slot<int32_t> columns;   // queries x k
  Slot<uint64_t> found;    // queries x k neighbours
  Slot<std::byte> select;  // for selection

  explicit TileSelectLayout(const TileSelectShape& shape) {
    if (!shape.suits()) return;
    keys = take<float>(shape.queries, shape.k);
    columns = take<int32_t>(shape.queries, shape.k);
    found = take<uint64_t>(shape.queries, shape.k);
    // Tiles of fewer queries are cut into slices, no more than about two for each multiprocessor, and merged; short
    // ones are sorted in memory.
    const int64_t whole = plan_select({shape.queries, shape.rows, shape.k}, shape.multiprocessors).workspace_bytes;
    const int64_t cut = int64_t{4} * shape.multiprocessors;
    const int64_t sorted = shape.k > kRegistersLongestRow ? shape.queries : 0;
    select = take<std::byte>(whole + (cut + sorted) * array_bytes<uint64_t>(shape.k));
  }
};

}  // namespace kith
