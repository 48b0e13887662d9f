// The nearest codeword by every instruction set, against the plain canonical distances.
#include "quantize/product/product_nearest_cpu.hpp"

#include "kernels/forced_target.hpp"
#include "reference/codes.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

// Rows lie in a wider matrix, from column `from` on.
void expect_nearest(const Matrix<float>& rows, int64_t from, const Matrix<float>& words) {
  NearestCodeword nearest;
  nearest.set(words.row(0), words.rows, words.cols);
  std::vector<float> scratch(static_cast<size_t>(NearestCodeword::scratch_floats(words.cols)));
  std::vector<uint8_t> labels(static_cast<size_t>(3 * rows.rows), 77);
  nearest.nearest(rows.row(0) + from, rows.cols, rows.rows, labels.data(), 3, scratch.data());
  for (int64_t i = 0; i < rows.rows; ++i) {
    const uint32_t best = reference::nearest_codeword(rows.row(i) + from, words.row(0), words.rows, words.cols);
    ASSERT_EQ(labels[static_cast<size_t>(3 * i)], best) << i;
    ASSERT_EQ(labels[static_cast<size_t>(3 * i + 1)], 77);  // what lies between is left alone
  }
}

// The columns from..from + cols - 1 of the first rows.
Matrix<float> part_of(const Matrix<float>& rows, int64_t count, int64_t from, int64_t cols) {
  Matrix<float> part(count, cols);
  for (int64_t i = 0; i < count; ++i) std::copy_n(rows.row(i) + from, cols, part.row(i));
  return part;
}

TEST(NearestCodeword, EqualsThePlainDistancesForEveryInstructionSetAndShape) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const Shape shape : reference::kAllShapes) {
      SCOPED_TRACE(name_of(shape));
      for (const auto& [cols, count] :
           {std::pair<int64_t, int64_t>{1, 16}, {2, 256}, {3, 33}, {4, 64}, {8, 256}, {17, 32}, {40, 128}}) {
        const auto rows = make_floats(shape, 37, cols + 3, 1);
        expect_nearest(rows, 2, make_floats(shape, count, cols, 2));
        expect_nearest(rows, 1, part_of(rows, 30, 1, cols));  // each is its own nearest, or an equal before it
      }
    }
  }
}

TEST(NearestCodeword, FewRowsAndOddCounts) {
  const auto words = make_floats(Shape::gaussian, 256, 8, 3);
  for (const int64_t count : {0, 1, 2, 4, 5, 31, 32, 33, 65}) {
    expect_nearest(make_floats(Shape::gaussian, count, 8, 4), 0, words);
  }
}

TEST(NearestCodeword, TiesGoToTheSmallerNumber) {
  Matrix<float> words(64, 4);
  for (int64_t w = 0; w < 64; ++w) {  // whole numbers, each four times: every row is as far from many
    for (int64_t c = 0; c < 4; ++c) words.row(w)[c] = static_cast<float>((w % 16 >> c) & 1);
  }
  Matrix<float> rows(200, 4);
  for (size_t i = 0; i < rows.values.size(); ++i) rows.values[i] = static_cast<float>(i * 7 % 5) * 0.5f - 0.5f;
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    expect_nearest(rows, 0, words);
  }
}

// A row whose two nearest differ in the last digit of the key, or less: only the canonical key tells.
TEST(NearestCodeword, NearTies) {
  const auto centre = make_floats(Shape::far_mean, 1, 8, 5);
  Matrix<float> words(32, 8);
  for (int64_t w = 0; w < 32; ++w) {
    std::copy_n(centre.row(0), 8, words.row(w));
    const float old = words.row(w)[w % 8];
    words.row(w)[w % 8] = w < 8 ? old + 1 : w < 16 ? old - 1 : std::nextafter(old + 1, w % 2 == 0 ? 0.0f : 2e9f);
  }
  Matrix<float> rows(40, 8);
  for (int64_t i = 0; i < 40; ++i) std::copy_n(centre.row(0), 8, rows.row(i));
  for (int64_t i = 8; i < 40; ++i) rows.row(i)[i % 8] = std::nextafter(rows.row(i)[i % 8], i % 3 == 0 ? 0.0f : 2e9f);
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    expect_nearest(rows, 0, words);
  }
}

TEST(NearestCodeword, ValuesThatAreNoNumbersTakeWhatTheOrderOfKeysGives) {
  const auto words = make_floats(Shape::gaussian, 16, 4, 6);
  auto rows = make_floats(Shape::gaussian, 40, 4, 7);
  rows.row(3)[1] = NAN;
  rows.row(20)[0] = INFINITY;
  rows.row(39)[3] = -INFINITY;
  expect_nearest(rows, 0, words);
}

}  // namespace
}  // namespace kith
