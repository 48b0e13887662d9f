#include "graph/build/cells/cell_items.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// The tiles of rows of a cell that a piece has.
std::pair<int64_t, int64_t> row_tiles(const CellLayout& layout, uint32_t cell, const WavePiece& piece) {
  const int64_t all = layout.first_tiles[cell + 1] - layout.first_tiles[cell];
  return {std::min(piece.first_row_tile, all), std::min(piece.end_row_tile, all)};
}

}  // namespace

CellLayout::CellLayout(std::vector<int64_t> cell_sizes) : sizes(std::move(cell_sizes)), first_tiles(sizes.size() + 1) {
  int64_t tile = 0;
  for (size_t cell = 0; cell < sizes.size(); ++cell) {
    first_tiles[cell] = tile;
    tile += divide_up(sizes[cell], kOperandTile);
  }
  first_tiles.back() = tile;
}

WaveTiles::WaveTiles(const CellLayout& layout, const std::vector<uint32_t>& probing) : first_slots(probing.size()) {
  for (size_t cell = 0; cell < probing.size(); ++cell) {
    first_slots[cell] = static_cast<uint32_t>(slots());
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

WaveHalves halves_of(const CellLayout& layout, const WaveTiles& wave, const WavePiece& piece) {
  WaveHalves halves{piece, piece};
  if (piece.tiles() > 1) {
    halves.first.end_tile = halves.second.first_tile = piece.first_tile + piece.tiles() / 2;
    return halves;
  }
  const auto [first, end] = row_tiles(layout, wave.cells[static_cast<size_t>(piece.first_tile)], piece);
  halves.first.first_row_tile = first;
  halves.second.end_row_tile = end;
  halves.first.end_row_tile = halves.second.first_row_tile = first + divide_up(end - first, 2);
  if (end - first <= 1) halves.second.first_tile = halves.second.end_tile;
  return halves;
}

}  // namespace kith
