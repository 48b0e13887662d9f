// How a wave of probes is cut for a GPU: the rows that probe a cell lie together, in tiles of kQueryTile slots that belong
// to one cell each, and a tile is multiplied with the tiles of rows of its cell. Pure, so that any machine can test it.
#pragma once

#include "kernels/matrix/product_plan.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// Where cells lie: each begins with a tile of rows.
struct CellLayout {
  std::vector<int64_t> sizes;
  std::vector<int64_t> first_tiles;  // cells + 1

  // From a tile on.
  explicit CellLayout(std::vector<int64_t> cell_sizes, int64_t first_tile = 0);
  int64_t cells() const { return static_cast<int64_t>(sizes.size()); }
  int64_t tiles() const { return first_tiles.back(); }
  int64_t places() const { return tiles() * kOperandTile; }
};

// Tiles of slots, one cell's after the other's; slots that no row fills are at the end of a cell's last tile. Who
// probes a cell without rows is compared with nobody there, and has no slot.
inline constexpr uint32_t kNoSlots = 0x80000000u;  // in the place of a first slot, and the next of such a cell after it
struct WaveTiles {
  std::vector<uint32_t> cells;        // of each tile
  std::vector<uint32_t> first_slots;  // of each cell; kNoSlots
  int64_t pairs = 0;                  // of rows that are compared

  WaveTiles() = default;
  // `probing`: how many rows probe each cell.
  WaveTiles(const CellLayout& layout, const std::vector<uint32_t>& probing);
  int64_t count() const { return static_cast<int64_t>(cells.size()); }
  int64_t slots() const { return count() * kQueryTile; }
};

// Some tiles of slots with some tiles of rows of their cells.
struct WavePiece {
  int64_t first_tile = 0;
  int64_t end_tile = 0;
  int64_t first_row_tile = 0;  // within a cell
  int64_t end_row_tile = INT64_MAX;

  int64_t tiles() const { return end_tile - first_tile; }
};

// The products of a piece, no item with more than `most` tiles of rows. Query tiles are counted from the piece's first.
std::vector<ProductItem> items_of(const CellLayout& layout, const WaveTiles& wave, const WavePiece& piece, int64_t most);

// A piece that was too much, in about so many, at least two: of its tiles of slots, or in halves of its rows where it
// has one tile of those. A tile with a tile is not cut any more.
std::vector<WavePiece> cut_piece(const CellLayout& layout, const WaveTiles& wave, const WavePiece& piece,
                                 int64_t parts);

// The pairs that a row of a cell of this size is likely to find in it, where lists of `length` are empty: those not
// above the limit that is known from the least values of parts (cell_parts).
double likely_own_pairs(int64_t size, int64_t length);

}  // namespace kith
