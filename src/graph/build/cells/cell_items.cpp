#include "graph/build/cells/cell_items.hpp"

#include "graph/build/cells/cell_workspace_cuda.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kith {
namespace {

// The tiles of rows of a cell that a piece has.
std::pair<int64_t, int64_t> row_tiles(const CellLayout& layout, uint32_t cell, const WavePiece& piece) {
  const int64_t all = layout.first_tiles[cell + 1] - layout.first_tiles[cell];
  return {std::min(piece.first_row_tile, all), std::min(piece.end_row_tile, all)};
}

}  // namespace

CellLayout::CellLayout(std::vector<int64_t> cell_sizes, int64_t first_tile)
    : sizes(std::move(cell_sizes)), first_tiles(sizes.size() + 1) {
  int64_t tile = first_tile;
  for (size_t cell = 0; cell < sizes.size(); ++cell) {
    first_tiles[cell] = tile;
    tile += divide_up(sizes[cell], kOperandTile);
  }
  first_tiles.back() = tile;
}

WaveTiles::WaveTiles(const CellLayout& layout, const std::vector<uint32_t>& probing) : first_slots(probing.size()) {
  for (size_t cell = 0; cell < probing.size(); ++cell) {
    first_slots[cell] = layout.sizes[cell] == 0 ? kNoSlots : static_cast<uint32_t>(slots());
    if (layout.sizes[cell] == 0) continue;
    cells.insert(cells.end(), static_cast<size_t>(divide_up(probing[cell], kQueryTile)), static_cast<uint32_t>(cell));
    pairs += int64_t{probing[cell]} * layout.sizes[cell];
  }
}

std::vector<ProductItem> items_of(const CellLayout& layout, const WaveTiles& wave, const WavePiece& piece,
                                  int64_t most) {
  std::vector<ProductItem> items;
  for (int64_t tile = piece.first_tile; tile < piece.end_tile; ++tile) {
    const uint32_t cell = wave.cells[static_cast<size_t>(tile)];
    const auto [first, end] = row_tiles(layout, cell, piece);
    for (int64_t at = first; at < end; at += most) {
      const int64_t start = layout.first_tiles[cell];
      items.push_back({static_cast<int>(tile - piece.first_tile), static_cast<int>(start + at),
                       static_cast<int>(start + std::min(at + most, end))});
    }
  }
  return items;
}

std::vector<WavePiece> cut_piece(const CellLayout& layout, const WaveTiles& wave, const WavePiece& piece,
                                 int64_t parts) {
  std::vector<WavePiece> cut;
  if (piece.tiles() > 1) {
    const int64_t tiles = divide_up(piece.tiles(), std::max<int64_t>(parts, 2));
    for (int64_t tile = piece.first_tile; tile < piece.end_tile; tile += tiles) {
      cut.push_back(piece);
      cut.back().first_tile = tile;
      cut.back().end_tile = std::min(tile + tiles, piece.end_tile);
    }
    return cut;
  }
  const auto [first, end] = row_tiles(layout, wave.cells[static_cast<size_t>(piece.first_tile)], piece);
  const int64_t middle = first + divide_up(end - first, 2);
  cut.push_back({piece.first_tile, piece.end_tile, first, middle});
  if (middle < end) cut.push_back({piece.first_tile, piece.end_tile, middle, end});
  return cut;
}

double likely_own_pairs(int64_t size, int64_t length) {
  const CellParts parts = cell_parts(length);
  const auto rows = static_cast<double>(size);
  const auto wanted = static_cast<double>(length + 1);
  const int64_t measured = std::min(size, parts.tiles * kOperandTile);
  const double values = static_cast<double>(measured) / parts.rows_per_part;
  // A part's least value is within the limit with probability 1 - (1 - p)^rows_per_part, p the share of such rows:
  // about `wanted` of the parts are.
  return values <= wanted ? rows : std::min(rows, -std::log1p(-wanted / values) / parts.rows_per_part * rows);
}

}  // namespace kith
