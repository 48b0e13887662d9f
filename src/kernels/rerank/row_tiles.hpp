// How rows are cut into tiles that stay in the shared memory of a multiprocessor each, for re-ranking many queries
// (rerank_tiles_cuda.cu). Pure functions, so that any machine can plan, and test plans, for any GPU.
#pragma once

#include <kith/dtype.hpp>

#include "core/divide.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

inline constexpr int kRowTileWarps = 24;        // of a block: what its registers suffice for
inline constexpr int kRowTileUnitCols = 32;     // columns are padded to a multiple of these
inline constexpr int kRowTileMostUnits = 4;     // of a row: a query's share of each thread stays in registers
inline constexpr int kRowTileMostRoom = 512;    // candidates of a query, which a warp sorts in its registers
inline constexpr int kRowTileSparePlaces = 64;  // of candidates, beyond those that one query can have

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
  // Of a block: the tile, and for each warp the values of a query and the places.
  int64_t shared_bytes() const {
    return int64_t{rows() + kRowTileWarps} * row_values() * static_cast<int64_t>(sizeof(float)) +
           int64_t{places()} * kRowTileWarps * static_cast<int64_t>(sizeof(uint16_t));
  }
};

// The largest tiles that a block's shared memory has room for, all about as large.
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

}  // namespace kith
