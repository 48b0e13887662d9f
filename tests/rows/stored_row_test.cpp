// Whether values are finite, wherever the one that is not lies.
#include "rows/stored_row.hpp"

#include "core/half.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using reference::stored_as;

template <typename T>
void expect_found(int64_t cols) {
  constexpr int64_t kRows = 5;
  auto rows = stored_as<T>(make_floats(Shape::gaussian, kRows, cols, 1));
  const MatrixView all = rows.view();
  const MatrixView first_columns(all.data(), all.dtype(), {kRows, cols - 1, cols});  // a gap after each row
  EXPECT_TRUE(rows_are_finite(all));
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      for (const float bad : {NAN, HUGE_VALF, -HUGE_VALF}) {
        const T before = rows.row(row)[col];
        reference::Matrix<float> one(1, 1);
        one.values = {bad};
        rows.row(row)[col] = stored_as<T>(one).values[0];
        EXPECT_FALSE(rows_are_finite(all)) << row << " " << col;
        EXPECT_EQ(rows_are_finite(first_columns), col == cols - 1) << row << " " << col;
        for (int64_t other = 0; other < kRows; ++other) EXPECT_EQ(row_is_finite(all, other), other != row);
        rows.row(row)[col] = before;
      }
    }
  }
}

TEST(StoredRow, FindsWhatIsNotFinite) {
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    for (const int64_t cols : {2, 7, 33, 70}) {
      expect_found<float>(cols);
      expect_found<Half>(cols);
      expect_found<BFloat16>(cols);
    }
  }
}

TEST(StoredRow, TheLargestAndSmallestNumbersAreFinite) {
  for (const Shape shape : reference::kAllShapes) EXPECT_TRUE(rows_are_finite(make_floats(shape, 9, 40, 2).view()));
  reference::Matrix<float> rows(1, 40);
  for (int64_t c = 0; c < 40; ++c) rows.row(0)[c] = c % 3 == 0 ? 3.4e38f : c % 3 == 1 ? -1e-45f : -0.0f;
  EXPECT_TRUE(rows_are_finite(rows.view()));
}

TEST(StoredRow, FloatsAreTakenWhereTheyLie) {
  const auto floats = make_floats(Shape::gaussian, 3, 20, 3);
  float room[20];
  EXPECT_EQ(floats_of(floats.view(), 1, room), floats.row(1));
  const auto halves = stored_as<Half>(floats);
  EXPECT_EQ(floats_of(halves.view(), 2, room), room);
  for (int64_t c = 0; c < 20; ++c) EXPECT_EQ(room[c], static_cast<float>(halves.row(2)[c]));
}

}  // namespace
}  // namespace kith
