#include "graph/build/cells/cell_items.hpp"

#include "graph/build/cells/cell_workspace_cuda.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace kith {
namespace {

// Pairs of tiles of slots, by their number in the wave, and tiles of rows.
std::multiset<std::pair<int64_t, int64_t>> tiles_of(const CellLayout& layout, const WaveTiles& wave,
                                                    const WavePiece& piece, int64_t most) {
  std::multiset<std::pair<int64_t, int64_t>> tiles;
  for (const ProductItem& item : items_of(layout, wave, piece, most)) {
    EXPECT_LT(item.first_tile, item.end_tile);
    EXPECT_LE(item.end_tile - item.first_tile, most);
    for (int64_t tile = item.first_tile; tile < item.end_tile; ++tile) {
      tiles.insert({piece.first_tile + item.query_tile, tile});
    }
  }
  return tiles;
}

TEST(CellItems, LayCellsInWholeTiles) {
  const CellLayout layout({5, 0, 128, 129});
  EXPECT_EQ(layout.first_tiles, (std::vector<int64_t>{0, 1, 1, 2, 4}));
  EXPECT_EQ(layout.places(), 4 * kOperandTile);
}

TEST(CellItems, CompareEveryProbingTileWithItsCellOnce) {
  const CellLayout layout({5, 0, 1000, 129});
  const WaveTiles wave(layout, {257, 3, 1, 0});
  EXPECT_EQ(wave.cells, (std::vector<uint32_t>{0, 0, 2}));
  EXPECT_EQ(wave.first_slots[2], 512u);
  EXPECT_EQ(wave.first_slots[1], kNoSlots);  // three rows probe a cell that has none: they take nobody's slots
  EXPECT_EQ(wave.pairs, 257 * 5 + 1000);
  const auto whole = tiles_of(layout, wave, {0, 3}, 100);
  EXPECT_EQ(whole.size(), 2u + 8u);
  EXPECT_EQ(tiles_of(layout, wave, {0, 3}, 3), whole);
}

TEST(CellItems, PartsOfAPieceAreTheWhole) {
  const CellLayout layout({700, 300});
  const WaveTiles wave(layout, {600, 300});
  for (const int64_t parts : {1, 2, 3, 100}) {
    std::vector<WavePiece> pieces{{0, wave.count()}};
    std::multiset<std::pair<int64_t, int64_t>> smallest;
    int uncut = 0;
    while (!pieces.empty()) {
      const WavePiece piece = pieces.back();
      pieces.pop_back();
      const std::vector<WavePiece> cut = cut_piece(layout, wave, piece, parts);
      std::multiset<std::pair<int64_t, int64_t>> all;
      for (const WavePiece& part : cut) all.merge(tiles_of(layout, wave, part, 2));
      EXPECT_EQ(all, tiles_of(layout, wave, piece, 2));
      if (cut.size() == 1) {
        EXPECT_EQ(all.size(), 1u);
        smallest.merge(all);
        ++uncut;
      } else {
        pieces.insert(pieces.end(), cut.begin(), cut.end());
      }
    }
    EXPECT_EQ(smallest, tiles_of(layout, wave, {0, wave.count()}, 2));
    EXPECT_EQ(uncut, 3 * 6 + 2 * 3);
  }
}

TEST(CellItems, OwnPairsAreForeseen) {
  EXPECT_EQ(likely_own_pairs(100, 15), 100);  // too few parts to limit anything
  const double usual = likely_own_pairs(500, 15);
  EXPECT_GT(usual, 16);
  EXPECT_LT(usual, 25);
  EXPECT_NEAR(likely_own_pairs(10000, 15), 10 * likely_own_pairs(1000, 15), 5);
  EXPECT_EQ(likely_own_pairs(5000, 600), 5000);  // long lists: no parts are measured
}

TEST(CellItems, PiecesShrinkWithTheMemory) {
  const CellSpaceProblem problem{.rows = 1000000, .length = 15, .chunks = 2, .cells = 2000};
  const CellSpacePlan most = plan_cell_space(problem, INT64_MAX);
  const CellSpacePlan less = plan_cell_space(problem, most.bytes / 2);
  EXPECT_LE(less.bytes, most.bytes / 2);
  EXPECT_LT(less.pair_capacity, most.pair_capacity);
  const CellSpacePlan least = plan_cell_space(problem, 0);
  EXPECT_GE(least.tiles, 1);
  EXPECT_GE(least.own_tiles, 1);
  EXPECT_GT(least.pair_capacity, kQueryTile * kOperandTile);  // what is not cut any more fits
  EXPECT_GT(least.spill_capacity, 2 * kQueryTile * kOperandTile);
  EXPECT_GE(least.bytes, problem.rows * (8 * 8 + 4));
  EXPECT_EQ(most.inbox_slots, 32);
  EXPECT_EQ(least.inbox_slots, 8);
}

TEST(CellItems, NothingIsLostWithSmallInboxes) {
  const CellSpaceProblem problem{.rows = 100000000, .length = 10, .chunks = 2, .cells = 66000};
  const CellSpacePlan plan = plan_cell_space(problem, int64_t{20} << 30);
  EXPECT_LE(plan.bytes, int64_t{20} << 30);
  EXPECT_EQ(plan.inbox_slots, 16);
  EXPECT_GT(plan.tiles, 1000);
}

}  // namespace
}  // namespace kith
