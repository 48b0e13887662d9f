// How a wave of probes is tiled for a GPU: the rows that probe a cell are contiguous, in tiles of kQueryTile slots of
// one cell each; a tile is multiplied with the tiles of rows of its cell. Pure functions, testable on any machine.
#pragma once

#include "kernels/matrix/product_plan.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// The layout of cells: each begins at a tile of rows.
struct CellLayout {
  std::vector<int64_t> sizes;
  std::vector<int64_t> first_tiles;  // cells + 1

  // From a tile on.
  explicit CellLayout(std::vector<int64_t> cell_sizes, int64_t first_tile = 0);
  int64_t cells() const { return static_cast<int64_t>(sizes.size()); }
  int64_t tiles() const { return first_tiles.back(); }
  int64_t places() const { return tiles() * kOperandTile; }
};

// Tiles of slots, cell by cell; unused slots are at the end of a cell's last tile. A probe of an empty cell compares
// nothing and has no slot.
inline constexpr uint32_t kNoSlots = 0x80000000u;  // replaces the first slot of an empty cell, and its next slot
struct WaveTiles {
  std::vector<uint32_t> cells;        // per tile
  std::vector<uint32_t> first_slots;  // per cell, or kNoSlots
  int64_t pairs = 0;                  // pairs of rows to compare

  WaveTiles() = default;
  // `probing`: how many rows probe each cell.
  WaveTiles(const CellLayout& layout, const std::vector<uint32_t>& probing);
  int64_t count() const { return static_cast<int64_t>(cells.size()); }
  int64_t slots() const { return count() * kQueryTile; }
};

// A range of tiles of slots with a range of tiles of rows of their cells.
struct WavePiece {
  int64_t first_tile = 0;
  int64_t end_tile = 0;
  int64_t first_row_tile = 0;  // within a cell
  int64_t end_row_tile = INT64_MAX;

  int64_t tiles() const { return end_tile - first_tile; }
};

// The products of a piece, in items of at most `most` row tiles. Query tiles are numbered from the piece's first.
std::vector<ProductItem> items_of(const CellLayout& layout, const WaveTiles& wave, const WavePiece& piece,
                                  int64_t most);

// Splits a piece that overflowed its buffer into about this many, at least two: by tiles of slots, or, with a single
// one, into halves of its rows. One tile by one tile is not split further.
std::vector<WavePiece> cut_piece(const CellLayout& layout, const WaveTiles& wave, const WavePiece& piece,
                                 int64_t parts);

// The expected number of pairs per row within a cell of this size, when lists of `length` are still empty: those up to
// the limit from the smallest values per part (cell_parts).
double likely_own_pairs(int64_t size, int64_t length);

}  // namespace kith
