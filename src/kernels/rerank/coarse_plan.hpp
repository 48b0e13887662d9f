// How the nearest of few rows are found for many queries: the coarse step of an index, the centres of a clustering.
// Pure functions, so that any machine can plan, and test plans, for any GPU.
//
// The k-th smallest of the minima of groups of rows is a threshold that at least k rows do not exceed. With few rows
// the groups must be small, or far more than k rows would be looked at; with many they must be large, or the minima
// would not stay in the L2 cache.
#pragma once

#include <kith/dtype.hpp>

#include "core/divide.hpp"
#include "core/slot.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

inline constexpr int64_t kCoarseLeastQueries = 256;  // fewer do not fill the machine with a warp each
inline constexpr int64_t kCoarseMostRows = 65536;    // more have few candidates for so many bits
inline constexpr int64_t kCoarseMostMinima = 2048;   // of each query: more would not stay in the L2 cache

struct CoarsePlan {
  int rows_per_minimum = 0;
  double likely = 0;  // expected candidates per query
};

// The largest groups that leave hardly more than k candidates; if none do, the smallest whose minima fit.
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

// Whether this is less work than computing every key.
inline bool suits_coarse(int64_t k, int64_t rows) {
  return plan_coarse(k, rows).likely <= static_cast<double>(rows) / 4;
}

// Room for candidates, at most `most`: near rows may share groups more often than by chance.
inline int64_t coarse_room(int64_t k, int64_t rows, int64_t most) {
  const auto likely = static_cast<int64_t>(std::min(plan_coarse(k, rows).likely, static_cast<double>(rows)));
  return std::min(2 * std::max(likely, k) + 192, most);
}

// The order of the products. Warpgroups stay on their multiprocessors, so that they are best given equal runs.
inline ProductSchedule coarse_schedule(ProductEngine engine, int64_t queries, int64_t rows, int multiprocessors,
                                       int64_t chunks) {
  if (engine == ProductEngine::wgmma) return schedule_runs(queries, rows, multiprocessors, chunks);
  return schedule_product(queries, rows, multiprocessors, chunks);
}

// How rows are cut into tiles that stay in the shared memory of a multiprocessor each, for re-ranking many queries
// (rerank_tiles_cuda.cu).

inline constexpr int kRowTileWarps = 24;        // of a block: what its registers suffice for
inline constexpr int kRowTileUnitCols = 32;     // columns are padded to a multiple of these
inline constexpr int kRowTileMostUnits = 4;     // of a row: a query's share of each thread stays in registers
inline constexpr int kRowTileMostRoom = 512;    // candidates per query; a warp sorts them in registers
inline constexpr int kRowTileSparePlaces = 64;  // candidates beyond those of one query

// Words of marks that the operand tiles of a tile may have; a thread holds them all. Rows of four units are so long
// that no more of them fit.
KITH_HOST_DEVICE constexpr int row_tile_words(int units) { return units == kRowTileMostUnits ? 16 : 32; }

struct RowTiles {
  int units = 0;          // of kRowTileUnitCols columns: 2 or 4
  int operand_tiles = 0;  // of kOperandTile rows, in a tile; 0: rows do not fit
  int count = 0;          // tiles
  int query_groups = 0;   // each tile is in the memory of so many multiprocessors, which share the queries

  KITH_HOST_DEVICE int rows() const { return operand_tiles * kOperandTile; }
  KITH_HOST_DEVICE int row_values() const { return units * kRowTileUnitCols; }
  // Places in the tile that a warp has memory for: those of the candidates of as many queries as they suffice for, and
  // a few beyond that are read but not used.
  KITH_HOST_DEVICE int places() const { return rows() + kRowTileSparePlaces; }
  // Shared memory of a block: the tile, and for each warp the values of a query and the places.
  int64_t shared_bytes() const {
    return int64_t{rows() + kRowTileWarps} * row_values() * static_cast<int64_t>(sizeof(float)) +
           int64_t{places()} * kRowTileWarps * static_cast<int64_t>(sizeof(uint16_t));
  }
};

// The largest tiles that fit a block's shared memory, of about equal size.
inline RowTiles cut_row_tiles(int64_t rows, int64_t cols, int64_t shared_bytes, int multiprocessors) {
  RowTiles tiles;
  tiles.units = cols <= 2 * kRowTileUnitCols ? 2 : kRowTileMostUnits;
  if (cols > kRowTileMostUnits * kRowTileUnitCols) return tiles;
  const int64_t of_none = tiles.shared_bytes();
  tiles.operand_tiles = 1;
  const int64_t of_one = tiles.shared_bytes();
  const int64_t room = (shared_bytes - of_none) / (of_one - of_none);
  tiles.operand_tiles = 0;
  if (room <= 0) return tiles;
  const int64_t all = std::max<int64_t>(divide_up(rows, kOperandTile), 1);
  tiles.count =
      static_cast<int>(divide_up(all, std::min<int64_t>(room, row_tile_words(tiles.units) / kMarkWordsPerTile)));
  tiles.operand_tiles = static_cast<int>(divide_up(all, tiles.count));
  tiles.query_groups = std::max(multiprocessors / tiles.count, 1);
  return tiles;
}

// Inputs for choosing how marked candidates are re-ranked: by tiles of rows kept on a multiprocessor, or by query.
struct CoarseRerank {
  int64_t queries = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t k = 0;
  DType query_dtype = DType::f32;
  DType base_dtype = DType::f32;
  int64_t room = 0;          // candidates per query
  int64_t shared_bytes = 0;  // available to a block
  int multiprocessors = 0;

  RowTiles tiles() const { return cut_row_tiles(rows, cols, shared_bytes, multiprocessors); }
};
inline bool can_use_row_tiles(const CoarseRerank& shape) {
  return shape.query_dtype == DType::f32 && shape.base_dtype == DType::f32 && shape.room <= kRowTileMostRoom &&
         shape.k <= shape.room && shape.tiles().operand_tiles > 0;
}
// Each query is processed once per tile, so it must have several candidates in each.
inline constexpr int64_t kRowTilesLeastQueries = 2048;
inline constexpr double kRowTilesLeastCandidates = 4;
inline bool suits_row_tiles(const CoarseRerank& shape) {
  return can_use_row_tiles(shape) && shape.queries >= kRowTilesLeastQueries &&
         shape.tiles().count <= shape.multiprocessors &&
         plan_coarse(shape.k, shape.rows).likely >= kRowTilesLeastCandidates * shape.tiles().count;
}

// Device memory for this many queries. Lists of candidates, if row tiles need them, have `list_room` entries per query,
// else 0; they reuse the memory of the minima.
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
