// How the nearest of few rows are found for many queries: the coarse step of an index, the centres of a clustering.
// Pure functions, so that any machine can plan, and test plans, for any GPU.
//
// The k-th smallest of the minima of groups of rows is a threshold that at least k rows do not exceed. With few rows
// the groups must be small, or far more than k rows would be looked at; with many they must be large, or the minima
// would not stay in the L2 cache.
#pragma once

#include "core/slot.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/product_plan.hpp"
#include "kernels/rerank/row_tiles.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

inline constexpr int64_t kCoarseLeastQueries = 256;  // fewer do not fill the machine with a warp each
inline constexpr int64_t kCoarseMostRows = 65536;    // more have few candidates for so many bits
inline constexpr int64_t kCoarseMostMinima = 2048;   // of each query: more would not stay in the L2 cache

struct CoarsePlan {
  int rows_per_minimum = 0;
  double likely = 0;  // candidates of a query
};

// The largest groups that leave hardly more candidates than k; where none do, the smallest that are few enough.
inline CoarsePlan plan_coarse(int64_t k, int64_t rows) {
  CoarsePlan plan;
  for (const int each : {64, 32, 8, 2}) {
    const int64_t minima = part_count(rows, each);
    if (plan.rows_per_minimum > 0 && minima > kCoarseMostMinima) break;
    plan = {each, rows_below_kth(k, minima)};
    if (plan.likely <= 1.16 * static_cast<double>(k) + 4) break;
  }
  return plan;
}

// Whether that is less work than computing every key.
inline bool suits_coarse(int64_t k, int64_t rows) {
  return plan_coarse(k, rows).likely <= static_cast<double>(rows) / 4;
}

// Candidates that re-ranking has room for, at most `most`: near rows may share groups more often than by chance.
inline int64_t coarse_room(int64_t k, int64_t rows, int64_t most) {
  const auto likely = static_cast<int64_t>(std::min(plan_coarse(k, rows).likely, static_cast<double>(rows)));
  return std::min(2 * std::max(likely, k) + 192, most);
}

// The order of the products. Warpgroups stay on their multiprocessors, so that they are best given equal runs.
inline ProductSchedule coarse_schedule(ProductEngine engine, int64_t queries, int64_t rows, int multiprocessors) {
  if (engine == ProductEngine::wgmma) return schedule_runs(queries, rows, multiprocessors);
  return schedule_product(queries, rows, multiprocessors);
}

// What decides how marked candidates are re-ranked: by tiles of rows that stay on a multiprocessor, or query by query.
struct CoarseRerank {
  int64_t queries = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t k = 0;
  DType query_dtype = DType::f32;
  DType base_dtype = DType::f32;
  int64_t room = 0;          // candidates of a query
  int64_t shared_bytes = 0;  // that a block may have
  int multiprocessors = 0;

  RowTiles tiles() const { return cut_row_tiles(rows, cols, shared_bytes, multiprocessors); }
};
inline bool can_use_row_tiles(const CoarseRerank& shape) {
  return shape.query_dtype == DType::f32 && shape.base_dtype == DType::f32 && shape.room <= kRowTileMostRoom &&
         shape.k <= shape.room && shape.tiles().operand_tiles > 0;
}
// Each query is looked at once for every tile: it must have some candidates in each.
inline constexpr int64_t kRowTilesLeastQueries = 2048;
inline constexpr double kRowTilesLeastCandidates = 4;
inline bool suits_row_tiles(const CoarseRerank& shape) {
  return can_use_row_tiles(shape) && shape.queries >= kRowTilesLeastQueries &&
         shape.tiles().count <= shape.multiprocessors &&
         plan_coarse(shape.k, shape.rows).likely >= kRowTilesLeastCandidates * shape.tiles().count;
}

// Device memory for so many queries. Lists of candidates, where row tiles need them, have `list_room` entries a query,
// else 0; they lie where the minima were.
struct CoarseLayout {
  Slot<uint32_t> marks;  // a multiple of 32 bytes for each query
  Slot<float> minima;
  Slot<uint64_t> lists;
  Slot<uint32_t> counts;
  int64_t bytes = 0;

  constexpr CoarseLayout(int64_t queries, int64_t rows, int rows_per_minimum, int64_t list_room)
      : marks{0, queries * mark_words(rows)},
        minima{marks.bytes(), queries * part_count(rows, rows_per_minimum)},
        lists{minima.offset, queries * list_room},
        counts{lists.offset + std::max(minima.bytes(), lists.bytes()), list_room > 0 ? queries : 0},
        bytes(counts.offset + counts.bytes()) {}
};
constexpr int64_t coarse_bytes(int64_t queries, int64_t rows, int rows_per_minimum, int64_t list_room) {
  return CoarseLayout(queries, rows, rows_per_minimum, list_room).bytes;
}

}  // namespace kith
