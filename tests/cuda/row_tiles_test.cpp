// How rows are cut into the tiles that stay in shared memory while candidates are re-ranked.
#include "kernels/rerank/coarse_plan.hpp"

#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kith {
namespace {

TEST(RowTiles, CoverTheRowsAndFitSharedMemory) {
  for (const int compute_capability : {80, 86, 90}) {
    const int64_t shared = most_shared_bytes(compute_capability);
    for (const int64_t rows : {1, 128, 129, 1000, 4096, 65536}) {
      for (const int64_t cols : {1, 64, 65, 128}) {
        const RowTiles tiles = cut_row_tiles(rows, cols, shared, 132);
        SCOPED_TRACE(::testing::Message() << rows << " x " << cols << ", " << compute_capability);
        ASSERT_GT(tiles.operand_tiles, 0);
        EXPECT_GE(int64_t{tiles.count} * tiles.rows(), rows);
        EXPECT_LT(int64_t{tiles.count - 1} * tiles.rows(), rows);  // none is empty
        EXPECT_GE(tiles.row_values(), cols);
        EXPECT_LE(tiles.shared_bytes(), shared);
        EXPECT_GE(tiles.query_groups, 1);
        EXPECT_LE(int64_t{tiles.count} * tiles.query_groups, std::max(132, tiles.count));
        EXPECT_LE(tiles.rows() + 8, tiles.places());
        // A thread holds all words of a tile, wherever it begins.
        for (int tile = 0; tile < tiles.count; ++tile) {
          const int first = tile * tiles.operand_tiles;
          EXPECT_LT(mark_word(first + tiles.operand_tiles - 1, 3) - first / 2 * 8, row_tile_words(tiles.units));
        }
      }
    }
    EXPECT_EQ(cut_row_tiles(4096, 129, shared, 132).operand_tiles, 0);
  }
  const RowTiles tiles = cut_row_tiles(4096, 128, most_shared_bytes(90), 132);
  EXPECT_EQ(tiles.rows(), 384);
  EXPECT_EQ(tiles.count * tiles.query_groups, 132);
}

}  // namespace
}  // namespace kith
