// The memory of the direct engine's selection (tile_select_cuda.hpp). Pure arithmetic, for plans too.
#pragma once

#include "cuda/workspace_layout.hpp"
#include "kernels/select/select_plan.hpp"

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
  int64_t keys = 0;     // queries x k, f32
  int64_t columns = 0;  // queries x k, i32
  int64_t found = 0;    // queries x k neighbours, u64
  int64_t select = 0;   // for selection

  explicit TileSelectLayout(const TileSelectShape& shape) {
    if (!shape.suits()) return;
    const int64_t list_bytes = shape.k * 8;
    keys = take(shape.queries, shape.k * 4);
    columns = take(shape.queries, shape.k * 4);
    found = take(shape.queries, list_bytes);
    // Tiles of fewer queries are cut into slices, no more than about two for each multiprocessor, and merged; short
    // ones are sorted in memory.
    const int64_t whole = plan_select({shape.queries, shape.rows, shape.k}, shape.multiprocessors).workspace_bytes;
    const int64_t cut = int64_t{4} * shape.multiprocessors;
    const int64_t sorted = shape.k > kRegistersLongestRow ? shape.queries : 0;
    select = take(1, whole + (cut + sorted) * list_bytes);
  }
};

}  // namespace kith
