// Every byte of every row has a place of its own, and every row a group.
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <kith/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace kith {
namespace {

TEST(OperandLayout, PlacesAreDifferentAndInside) {
  for (const int64_t rows : {1, 256, 300}) {
    for (const int64_t chunks : {1, 3}) {
      std::vector<int> seen(static_cast<size_t>(operand_bytes(rows, chunks)), 0);
      for (int64_t row = 0; row < operand_tiles(rows) * kOperandTile; ++row) {
        for (int64_t byte = 0; byte < chunks * kChunkBytes; ++byte) {
          ++seen[static_cast<size_t>(operand_offset(row, byte, chunks))];
        }
      }
      for (const int count : seen) ASSERT_EQ(count, 1);
    }
  }
}

TEST(OperandLayout, TheLastChunkHasTheStepsThatHoldColumns) {
  for (int64_t cols = 1; cols <= 300; ++cols) {
    for (const int64_t bytes : {1, 2}) {
      const int64_t steps = (operand_chunks(cols, bytes) - 1) * kChunkSteps + last_chunk_steps(cols, bytes);
      EXPECT_GE(steps * kStepBytes, cols * bytes);
      EXPECT_LT((steps - 1) * kStepBytes, cols * bytes);
      EXPECT_LE(last_chunk_steps(cols, bytes), kChunkSteps);
      EXPECT_GE(last_chunk_steps(cols, bytes), 1);
    }
  }
  EXPECT_EQ(last_chunk_steps(80, 2), 1);
}

TEST(OperandLayout, SixteenBytesStayTogether) {
  for (int64_t row : {0, 5, 131}) {
    for (int64_t byte = 0; byte < 384; ++byte) {
      EXPECT_EQ(operand_offset(row, byte, 3) - operand_offset(row, byte / 16 * 16, 3), byte % 16);
    }
  }
}

TEST(OperandLayout, EveryRowIsInOneGroup) {
  for (const int64_t rows : {1, 255, 256, 257, 3000}) {
    for (const int tiles : {1, 2}) {
      std::vector<int> seen(static_cast<size_t>(operand_tiles(rows) * kOperandTile), 0);
      for (int64_t group = 0; group < group_count(rows, tiles); ++group) {
        for (int i = 0; i < group_rows(tiles); ++i) ++seen[static_cast<size_t>(group_row(group, i, tiles))];
      }
      for (const int count : seen) ASSERT_EQ(count, 1);
    }
  }
}

TEST(OperandLayout, EveryRowHasOneMark) {
  for (const int64_t rows : {1, 256, 257, 3000}) {
    std::vector<int> seen(static_cast<size_t>(operand_tiles(rows) * kOperandTile), 0);
    for (int64_t word = 0; word < mark_words(rows); ++word) {
      for (int bit = 0; bit < 32; ++bit) ++seen[static_cast<size_t>(marked_row(word, bit))];
    }
    for (const int count : seen) ASSERT_EQ(count, 1);
    // A thread's word of a tile has its columns: pairs, eight apart.
    for (int64_t tile = 0; tile < operand_tiles(rows); ++tile) {
      for (int part = 0; part < kMarkWordsPerTile; ++part) {
        ASSERT_LT(mark_word(tile, part), mark_words(rows));
        ASSERT_EQ(marked_row(mark_word(tile, part), 0), tile * kOperandTile + 2 * part);
        ASSERT_EQ(marked_row(mark_word(tile, part), 31), tile * kOperandTile + 120 + 2 * part + 1);
      }
    }
  }
}

TEST(ProductSchedule, AListIsTakenAsItIs) {
  const ProductItem items[] = {{3, 4, 10}, {0, 0, 2}};
  const ProductSchedule schedule = schedule_items(items, 2);
  EXPECT_EQ(schedule.count(), 2);
  EXPECT_EQ(schedule.item(0).end_tile, 10);
  EXPECT_EQ(schedule.item(1).query_tile, 0);
  const int32_t fewer = 1;
  EXPECT_EQ(schedule_items(items, 2, &fewer).count(), 1);
}

TEST(ProductSchedule, RunsCoverAllTilesAndDifferByOnePair) {
  for (const int64_t queries : {1, 257, 10000, 16384}) {
    for (const int64_t rows : {1, 300, 1024, 4096, 65536}) {
      const ProductSchedule schedule = schedule_runs(queries, rows, 132);
      SCOPED_TRACE(::testing::Message() << queries << " queries, " << rows << " rows");
      std::vector<int> seen(static_cast<size_t>(schedule.query_tiles) * static_cast<size_t>(schedule.base_tiles), 0);
      std::vector<int> tiles(static_cast<size_t>(std::max(schedule.runs, 1)), 0);
      const int blocks = std::min(schedule.count(), 132);
      for (int block = 0; block < blocks; ++block) {
        for (int i = block; i < schedule.end_for(block); i += blocks) {
          const ProductItem item = schedule.item(i);
          EXPECT_FALSE(item.empty());
          EXPECT_EQ(item.first_tile % 2, 0);
          EXPECT_EQ(item.end_tile % 2, 0);
          if (schedule.runs > 0) tiles[static_cast<size_t>(i % schedule.runs)] += item.end_tile - item.first_tile;
          for (int tile = item.first_tile; tile < item.end_tile; ++tile) {
            ++seen[static_cast<size_t>(item.query_tile) * static_cast<size_t>(schedule.base_tiles) +
                   static_cast<size_t>(tile)];
          }
        }
      }
      for (const int count : seen) ASSERT_EQ(count, 1);
      const auto [least, most] = std::minmax_element(tiles.begin(), tiles.end());
      EXPECT_LE(*most - *least, 2);
    }
  }
  EXPECT_EQ(schedule_runs(10000, 4096, 132).runs, 132);
  EXPECT_EQ(schedule_runs(100000, 1024, 132).runs, 0);  // a run would have several tiles of queries
}

TEST(OperandLayout, PartsAreSmallGroups) {
  for (const int64_t rows : {1, 257, 4096}) {
    EXPECT_EQ(part_count(rows, 64), group_count(rows, 2));
    EXPECT_EQ(part_count(rows, 32), group_count(rows, 1));
    EXPECT_EQ(part_count(rows, 2) * 2, operand_tiles(rows) * kOperandTile);
  }
}

TEST(ProductSchedule, ItemsCoverAllTilesAndKeepTheDeviceBusy) {
  for (const int64_t queries : {1, 256, 257, 10000, 16384}) {
    for (const auto& [rows, chunks] :
         {std::pair<int64_t, int64_t>{1, 24}, {300, 1}, {40000, 5}, {40000, 64}, {1000000, 2}, {1000000, 24}}) {
      const ProductSchedule schedule = schedule_product(queries, rows, 132, chunks);
      SCOPED_TRACE(::testing::Message() << queries << " queries, " << rows << " rows, " << chunks << " chunks");
      EXPECT_EQ(schedule.query_tiles, (queries + kQueryTile - 1) / kQueryTile);
      EXPECT_EQ(schedule.base_tiles, operand_tiles(rows));
      EXPECT_EQ(schedule.tiles_per_item % 2, 0);
      const int64_t steps = divide_up(schedule.base_tiles, schedule.tiles_per_item);
      EXPECT_EQ(schedule.items, steps * schedule.query_tiles);
      std::vector<int> seen(static_cast<size_t>(schedule.query_tiles) * static_cast<size_t>(schedule.base_tiles), 0);
      for (int i = 0; i < schedule.count(); ++i) {
        const ProductItem item = schedule.item(i);
        EXPECT_EQ(item.first_tile % 2, 0);
        for (int tile = item.first_tile; tile < item.end_tile; ++tile) {
          ++seen[static_cast<size_t>(item.query_tile) * static_cast<size_t>(schedule.base_tiles) +
                 static_cast<size_t>(tile)];
        }
      }
      for (const int count : seen) ASSERT_EQ(count, 1);
      const double work = static_cast<double>(schedule.query_tiles) * schedule.base_tiles;
      const double waves = static_cast<double>(divide_up(schedule.items, 132)) * schedule.tiles_per_item;
      if (work > 132 * 200) {
        EXPECT_LT(waves * 132, 1.1 * work);
      }
    }
  }
}

TEST(ProductPlan, WarpgroupsAreForHopperAlone) {
  EXPECT_EQ(product_engine(90), ProductEngine::wgmma);
  EXPECT_EQ(product_engine(80), ProductEngine::mma);
  EXPECT_EQ(product_engine(120), ProductEngine::mma);
  EXPECT_EQ(product_engine(90, ProductEngine::mma), ProductEngine::mma);
  EXPECT_THROW(product_engine(80, ProductEngine::wgmma), Unsupported);
}

TEST(ProductPlan, RerankingFillsTheSharedMemoryOfABlock) {
  for (const int compute_capability : {80, 86, 90, 120, 999}) {
    const int64_t most = most_shared_bytes(compute_capability);
    for (const int64_t cols : {1, 128, 8000}) {
      const int64_t room = rerank_room(cols, most);
      EXPECT_EQ(room % 2, 0);
      EXPECT_GE(room, 4096);
      EXPECT_LT(rerank_bytes(room, cols), most);
      EXPECT_GT(rerank_bytes(room, cols), most - 2048);
    }
  }
  EXPECT_EQ(rerank_room(8000, 1000), 0);
}

// As many rows as it takes until k of the groups have one.
TEST(ProductPlan, RowsBelowTheKthMinimumOfRandomGroups) {
  std::mt19937 random(1);
  for (const int64_t groups : {1000, 15625}) {
    for (const int64_t k : {groups / 20, groups / 2, groups * 2 / 3}) {
      std::vector<bool> seen(static_cast<size_t>(groups));
      int64_t rows = 0;
      for (int64_t filled = 0; filled < k; ++rows) {
        const size_t group = random() % static_cast<size_t>(groups);
        filled += seen[group] ? 0 : 1;
        seen[group] = true;
      }
      EXPECT_NEAR(rows_below_kth(k, groups), static_cast<double>(rows), 0.08 * static_cast<double>(rows)) << k;
    }
  }
  EXPECT_TRUE(std::isinf(rows_below_kth(5, 5)));
}

TEST(ProductPlan, BytesWhereTheyAreExact) {
  EXPECT_EQ(operand_type(KeyKind::l2, DType::u8, DType::u8, 128), OperandType::bytes);
  EXPECT_EQ(operand_type(KeyKind::inner_product, DType::i8, DType::i8, 400), OperandType::bytes);
  EXPECT_EQ(operand_type(KeyKind::inner_product, DType::i8, DType::i8, 401), OperandType::half);
  EXPECT_EQ(operand_type(KeyKind::l2, DType::u8, DType::i8, 128), OperandType::half);
  EXPECT_EQ(operand_type(KeyKind::cosine, DType::u8, DType::u8, 128), OperandType::half);
  EXPECT_EQ(operand_type(KeyKind::l2, DType::f32, DType::f32, 128), OperandType::half);
}

}  // namespace
}  // namespace kith
