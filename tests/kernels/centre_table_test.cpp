// The nearest of few rows by every instruction set, against the plain canonical distances.
#include "kernels/assign/centre_table_cpu.hpp"

#include <kith/resources.hpp>

#include "core/dtype_visit.hpp"
#include "core/half.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Matrix;
using reference::Shape;

template <KeyKind kKind, typename T>
void expect_nearest(const Matrix<T>& rows, const Matrix<float>& few, float origin) {
  const Resources resources;
  CentreTable compared(kKind, std::vector<float>(static_cast<size_t>(rows.cols), origin), few.rows + 3, resources);
  compared.set(few.view());
  // What lies there before is of no account.
  std::vector<float> scratch(static_cast<size_t>(CentreTable::scratch_floats(few.rows + 3, rows.cols)), NAN);
  std::vector<int32_t> labels(static_cast<size_t>(rows.rows), -1);
  std::vector<float> keys(static_cast<size_t>(rows.rows), -1.0f);
  compared.nearest(rows.view(), labels.data(), keys.data(), scratch.data());
  std::vector<int32_t> labels_alone(static_cast<size_t>(rows.rows), -1);
  compared.nearest(rows.view(), labels_alone.data(), nullptr, scratch.data());
  ASSERT_EQ(labels_alone, labels);
  for (int64_t i = 0; i < rows.rows; ++i) {
    int32_t best = 0;
    float least = INFINITY;
    for (int64_t f = 0; f < few.rows; ++f) {
      const float key = canonical_pair<kKind>(rows.row(i), few.row(f), rows.cols);
      if (key < least) {
        least = key;
        best = static_cast<int32_t>(f);
      }
    }
    ASSERT_EQ(labels[static_cast<size_t>(i)], best) << i;
    ASSERT_EQ(keys[static_cast<size_t>(i)], least) << i;
  }
}

TEST(CentreTable, EqualsThePlainDistancesForEveryInstructionSetAndShape) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const Shape shape : reference::kAllShapes) {
      SCOPED_TRACE(name_of(shape));
      for (const auto& [cols, count] : {std::pair<int64_t, int64_t>{1, 1},
                                        {3, 2},
                                        {8, 8},
                                        {16, 16},
                                        {17, 33},
                                        {70, 128},
                                        {17, 1},
                                        {33, 2},
                                        {40, 3},
                                        {19, 4},
                                        {32, 5},
                                        {65, 6},
                                        {100, 7},
                                        {21, 300},
                                        {203, 40}}) {
        const auto rows = make_floats(shape, 61, cols, 1);
        const auto few = make_floats(shape, count, cols, 2);
        expect_nearest<KeyKind::squared_l2>(rows, few, 0.3f);
        expect_nearest<KeyKind::inner_product>(rows, few, 0.3f);
        expect_nearest<KeyKind::squared_l2>(rows, rows, 0.0f);  // each is its own nearest, or an equal before it
      }
    }
    const auto bytes = make_bytes(100, 13, 3, 3);  // many are equally near
    const auto few = make_floats(Shape::gaussian, 9, 13, 4);
    expect_nearest<KeyKind::squared_l2>(bytes, few, 1.0f);
    expect_nearest<KeyKind::inner_product>(bytes, few, 1.0f);
  }
}

TEST(CentreTable, NoNumberIsNearerThanAnyOther) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const int64_t cols : {1, 4, 16, 17}) {
      auto few = make_floats(Shape::gaussian, 6, cols, 9);
      few.row(1)[0] = NAN;
      few.row(4)[cols - 1] = NAN;
      expect_nearest<KeyKind::squared_l2>(make_floats(Shape::gaussian, 200, cols, 10), few, 0.0f);
    }
  }
}

// Undefined labels, but inside.
TEST(CentreTable, StaysInsideWhateverTheNumbersAre) {
  auto rows = make_floats(Shape::gaussian, 40, 5, 7);
  const auto few = make_floats(Shape::gaussian, 6, 5, 8);
  rows.row(3)[1] = NAN;
  rows.row(9)[4] = INFINITY;
  rows.row(39)[0] = 3e38f;
  const Resources resources;
  CentreTable compared(KeyKind::squared_l2, std::vector<float>(5, 0.0f), 6, resources);
  compared.set(few.view());
  std::vector<float> scratch(static_cast<size_t>(CentreTable::scratch_floats(6, 5)));
  std::vector<int32_t> labels(40, -1);
  std::vector<float> keys(40);
  compared.nearest(rows.view(), labels.data(), keys.data(), scratch.data());
  for (const int32_t label : labels) EXPECT_TRUE(label >= 0 && label < 6) << label;
}

TEST(CentreTable, TellsRowsThatAreNotFinite) {
  const Resources resources;
  for (const std::string& target : cpu_targets()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const auto& [cols, count] : {std::pair<int64_t, int64_t>{3, 4}, {16, 5}, {33, 3}, {40, 7}, {35, 20}}) {
      CentreTable compared(KeyKind::squared_l2, std::vector<float>(static_cast<size_t>(cols), 0.0f), count, resources);
      compared.set(make_floats(Shape::gaussian, count, cols, 8).view());
      std::vector<float> scratch(static_cast<size_t>(CentreTable::scratch_floats(count, cols)));
      std::vector<int32_t> labels(37);
      std::vector<float> keys(37);
      auto rows = make_floats(Shape::gaussian, 37, cols, 7);
      EXPECT_TRUE(compared.nearest(rows.view(), labels.data(), nullptr, scratch.data()));
      for (const int64_t row : {0, 5, 31, 36}) {
        for (const float value : {NAN, INFINITY, -INFINITY}) {
          const float before = std::exchange(rows.row(row)[cols - 1], value);
          EXPECT_FALSE(compared.nearest(rows.view(), labels.data(), nullptr, scratch.data())) << row << " " << value;
          EXPECT_FALSE(compared.nearest(rows.view(), labels.data(), keys.data(), scratch.data()))
              << row << " " << value;
          rows.row(row)[cols - 1] = before;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kith
