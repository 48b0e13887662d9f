#include <kith/error.hpp>
#include <kith/view.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace kith {
namespace {

TEST(MatrixView, KnowsItsRows) {
  std::vector<float> values(12);
  const MatrixView view(values.data(), DType::f32, {3, 2, 4});
  EXPECT_EQ(view.row(2), reinterpret_cast<const std::byte*>(values.data() + 8));
  const MatrixView part = view.slice(1, 2);
  EXPECT_EQ(part.data(), values.data() + 4);
  EXPECT_EQ(part.rows(), 2);
  EXPECT_EQ(part.row_stride(), 4);
}

TEST(MatrixView, RefusesWhatCannotBe) {
  float value = 0;
  EXPECT_THROW(MatrixView(&value, -1, 1), InvalidArgument);
  EXPECT_THROW(MatrixView(&value, 1, -1), InvalidArgument);
  EXPECT_THROW(MatrixView(&value, DType::f32, {2, 4, 3}), InvalidArgument);
  EXPECT_THROW(MatrixView(static_cast<const float*>(nullptr), 1, 1), InvalidArgument);
  EXPECT_THROW(MatrixView(&value, int64_t{1} << 40, int64_t{1} << 40), InvalidArgument);
}

TEST(MatrixView, MayBeEmptyWithoutMemory) {
  const MatrixView view(static_cast<const float*>(nullptr), 0, 16);
  EXPECT_TRUE(view.empty());
  EXPECT_EQ(view.slice(0, 0).rows(), 0);
}

TEST(MatrixView, SlicesStayInside) {
  std::vector<float> values(6);
  const MatrixView view(values.data(), 3, 2);
  EXPECT_THROW(view.slice(2, 2), InvalidArgument);
  EXPECT_THROW(view.slice(-1, 1), InvalidArgument);
  EXPECT_THROW(view.slice(0, -1), InvalidArgument);
  EXPECT_NO_THROW(view.slice(3, 0));
}

}  // namespace
}  // namespace kith
