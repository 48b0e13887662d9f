// Every byte of every row has a place of its own, and every row a group.
#include "kernels/product/operand_layout.hpp"

#include "kernels/product/product_plan.hpp"

#include <kith/error.hpp>

#include <gtest/gtest.h>

#include <cstdint>
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

TEST(ProductSchedule, ItemsCoverAllTilesAndKeepTheDeviceBusy) {
  for (const int64_t queries : {1, 256, 257, 10000, 16384}) {
    for (const int64_t rows : {1, 300, 40000, 1000000}) {
      const ProductSchedule schedule = schedule_product(queries, rows, 132);
      SCOPED_TRACE(testing::Message() << queries << " queries, " << rows << " rows");
      EXPECT_EQ(schedule.query_tiles, (queries + kQueryTile - 1) / kQueryTile);
      EXPECT_EQ(schedule.base_tiles, operand_tiles(rows));
      EXPECT_EQ(schedule.tiles_per_item % 2, 0);
      const int64_t steps = divide_rounding_up(schedule.base_tiles, schedule.tiles_per_item);
      EXPECT_EQ(schedule.items, steps * schedule.query_tiles);
      const double work = static_cast<double>(schedule.query_tiles) * schedule.base_tiles;
      const double waves = static_cast<double>(divide_rounding_up(schedule.items, 132)) * schedule.tiles_per_item;
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
