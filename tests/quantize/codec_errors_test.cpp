#include <kith/error.hpp>

#include "cluster/fitted.hpp"
#include "core/memory_budget.hpp"
#include "quantize/codec.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;
using ::testing::HasSubstr;

template <typename Action>
std::string refused(const Action& action) {
  try {
    action();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string refused_format(const CodeRecipe& spec, int64_t cols) {
  return refused([&] { spec.format_for(cols); });
}

TEST(CodecErrors, BitsAndParts) {
  EXPECT_THAT(refused_format({kScalarCode, DType::f32, 5, 0}, 8),
              HasSubstr("bits = 5; a scalar code has 4, 6 or 8"));
  EXPECT_THAT(refused_format({kProductCode, DType::f32, 9, 2}, 8),
              HasSubstr("bits = 9; a product code has 4 to 8"));
  EXPECT_THAT(refused_format({kProductCode, DType::f32, 3, 2}, 8), HasSubstr("bits = 3"));
  EXPECT_THAT(refused_format({kProductCode, DType::f32, 8, 7}, 96), HasSubstr("take 6 or 8, or a transform"));
  EXPECT_THAT(refused_format({kProductCode, DType::f32, 8, 0}, 96), HasSubstr("take 1,"));
  EXPECT_THAT(refused_format({kProductCode, DType::f32, 8, 200}, 96), HasSubstr("take 96,"));
  EXPECT_THAT(refused_format({kProductCode, DType::f32, 8, 2}, 7), HasSubstr("take 1 or 7,"));
  EXPECT_THAT(refused_format({kScalarCode, DType::f32, 8, 0}, 0), HasSubstr("no columns"));
}

TEST(CodecErrors, TooFewRows) {
  const auto rows = make_floats(Shape::gaussian, 255, 8, 1);
  const auto text = refused([&] {
    Codec::train({kProductCode, DType::f32, 8, 2}, rows.view(), 0, cpu_resources(1));
  });
  EXPECT_THAT(text, HasSubstr("255 rows cannot train 256 codewords; give at least 256 rows (9984 train well)"));
  EXPECT_THAT(refused([&] {
                Codec::train({kScalarCode, DType::f32, 8, 0}, rows.view().slice(0, 0), 0, cpu_resources(1));
              }),
              HasSubstr("no rows to train on"));
}

TEST(CodecErrors, FewRowsAreLoggedOnce) {
  const auto rows = make_floats(Shape::gaussian, 16 * 39, 8, 1);
  std::vector<std::string> lines;
  const Resources resources =
      cpu_resources(2).with_log([&](LogLevel, std::string_view text) { lines.emplace_back(text); });
  const CodeRecipe spec{kProductCode, DType::f32, 4, 4};
  Codec::train(spec, rows.view(), 0, resources);
  EXPECT_TRUE(lines.empty());
  Codec::train(spec, rows.view().slice(0, 16 * 39 - 1), 0, resources);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("623 rows train 16 codewords; 624 or more train well"));
}

TEST(CodecErrors, Values) {
  const CodeFormat format{CodeKind::scalar, 2, DType::f32, 8, 0};
  EXPECT_THAT(refused([&] {
                Codec::from_parts(format, {1, 2, 3});
              }),
              HasSubstr("3 trained values; codes of 2 columns need 4"));
  EXPECT_THAT(refused([&] { Codec::from_parts(format, {1, 2, NAN, 3}); }), HasSubstr("trained value 2 is nan"));
}

TEST(CodecErrors, Shapes) {
  const auto rows = make_floats(Shape::gaussian, 40, 8, 1);
  const auto codec = Codec::train({kScalarCode, DType::f32, 8, 0}, rows.view(), 0, cpu_resources(1));
  std::vector<uint8_t> codes(400);
  EXPECT_THAT(refused([&] { codec->encode(MatrixView(rows.row(0), 40, 7), codes.data(), cpu_resources(1)); }),
              HasSubstr("the rows have 7 columns; the code is of 8"));
  std::vector<float> out(320);
  EXPECT_THAT(refused([&] {
                codec->decode(codes.data(), 40, {out.data(), 39, 8}, cpu_resources(1));
              }),
              HasSubstr("the output is 39 x 8 f32; it must be 40 x 8 f32"));
}

TEST(CodecErrors, ValuesThatATypeCannotHold) {
  auto rows = make_floats(Shape::gaussian, 600, 8, 1);
  rows.row(590)[3] = 70000;
  const auto codec = Codec::train({kStoredCode, DType::f16, 8, 0}, rows.view(), 0, cpu_resources(2));
  std::vector<uint8_t> codes(600 * 16);
  EXPECT_THAT(refused([&] { codec->encode(rows.view(), codes.data(), cpu_resources(2)); }),
              HasSubstr("row 590, column 3 of 'rows' holds 70000, which f16 cannot"));
  EXPECT_THAT(refused([&] {
                const auto huge = make_floats(Shape::gaussian, 3, 2, 1);
                Matrix<float> far = huge;
                far.row(0)[1] = 3e38f;
                far.row(1)[1] = -3e38f;
                Codec::train({kScalarCode, DType::f32, 8, 0}, far.view(), 0, cpu_resources(1));
              }),
              HasSubstr("column 1 goes from"));
}

}  // namespace
}  // namespace kith
