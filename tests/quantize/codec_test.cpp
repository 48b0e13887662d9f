// Codes and what they decode to, against their definitions, for every instruction set and number of threads.
#include "quantize/codec.hpp"

#include "cluster/fitted.hpp"
#include "core/half.hpp"
#include "kernels/forced_target.hpp"
#include "reference/codes.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

std::vector<uint8_t> encoded(const Codec& codec, const MatrixView& rows, const Resources& resources) {
  std::vector<uint8_t> codes(static_cast<size_t>(rows.rows() * codec.format().bytes()), 0xA5);
  codec.encode(rows, codes.data(), resources);
  return codes;
}

Matrix<float> decoded(const Codec& codec, const std::vector<uint8_t>& codes, const Resources& resources) {
  const int64_t count = static_cast<int64_t>(codes.size()) / codec.format().bytes();
  Matrix<float> rows(count, codec.format().cols);
  codec.decode(codes.data(), count, {rows.values.data(), count, rows.cols}, resources);
  return rows;
}

void expect_definitions(const Codec& codec, const Matrix<float>& rows, const Resources& resources) {
  const CodeFormat& format = codec.format();
  const std::vector<uint8_t> codes = encoded(codec, rows.view(), resources);
  const Matrix<float> back = decoded(codec, codes, resources);
  for (int64_t i = 0; i < rows.rows; ++i) {
    const uint8_t* const code = codes.data() + i * format.bytes();
    ASSERT_EQ(std::vector<uint8_t>(code, code + format.bytes()), reference::encode(format, codec.values(), rows.row(i)))
        << i;
    const std::vector<float> expected = reference::decode(format, codec.values(), code);
    ASSERT_EQ(std::vector<float>(back.row(i), back.row(i) + rows.cols), expected) << i;
  }
}

CodeRecipe scalar(int bits) { return {kScalarCode, DType::f32, bits, 0}; }
CodeRecipe product(int64_t parts, int bits) { return {kProductCode, DType::f32, bits, parts}; }
CodeRecipe stored(DType dtype) { return {kStoredCode, dtype, 8, 0}; }

TEST(Codec, ScalarCodesAreAsDefined) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const Shape shape : reference::kAllShapes) {
      if (shape == Shape::huge) continue;  // its spans leave f32
      SCOPED_TRACE(name_of(shape));
      for (const int bits : {4, 6, 8}) {
        const auto rows = make_floats(shape, 200, 35, 1);
        const auto codec = Codec::train(scalar(bits), rows.view().slice(0, 150), 0, cpu_resources(2));
        expect_definitions(*codec, rows, cpu_resources(2));  // the last rows lie outside of the ranges, too
      }
    }
  }
}

// Where the product with 15 or 63 rounds up to a whole number, the code is that of the product before rounding.
TEST(Codec, ScalarCodesNextToWholeNumbers) {
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    for (const int bits : {4, 6, 8}) {
      const auto levels = static_cast<float>((1 << bits) - 1);
      Matrix<float> rows(2 * (1 << bits), 3);
      for (int64_t i = 0; i < rows.rows; ++i) {
        const float value = static_cast<float>(i / 2) / levels;
        rows.row(i)[0] = i % 2 == 0 ? value : std::nextafter(value, 0.0f);
        rows.row(i)[1] = i % 2 == 0 ? std::nextafter(value, 2.0f) : 1 - value;
        rows.row(i)[2] = 5;  // a column without a span
      }
      const auto codec = Codec::from_parts({CodeKind::scalar, 3, DType::f32, bits, 0}, {0, 0, 5, 1, 1, 0});
      expect_definitions(*codec, rows, cpu_resources(1));
    }
  }
}

TEST(Codec, ScalarRangesAreThoseOfTheRows) {
  const auto rows = make_floats(Shape::gaussian, 3000, 7, 2);
  const auto codec = Codec::train(scalar(8), rows.view(), 0, cpu_resources(3));
  for (int64_t c = 0; c < 7; ++c) {
    float least = INFINITY;
    float largest = -INFINITY;
    for (int64_t i = 0; i < rows.rows; ++i) {
      least = std::min(least, rows.row(i)[c]);
      largest = std::max(largest, rows.row(i)[c]);
    }
    EXPECT_EQ(codec->values()[static_cast<size_t>(c)], least);
    EXPECT_EQ(codec->values()[static_cast<size_t>(7 + c)], largest - least);
  }
}

TEST(Codec, ScalarRowsOfEveryTypeAreWidened) {
  const auto floats = make_floats(Shape::gaussian, 100, 9, 3);
  const auto expect_same = [&](const auto& rows) {
    const auto widened = reference::widened(rows);
    for (const CodeRecipe& spec : {scalar(8), scalar(4), product(3, 4)}) {
      const auto codec = Codec::train(spec, rows.view(), 5, cpu_resources(2));
      EXPECT_EQ(codec->values(), Codec::train(spec, widened.view(), 5, cpu_resources(1))->values());
      EXPECT_EQ(encoded(*codec, rows.view(), cpu_resources(2)), encoded(*codec, widened.view(), cpu_resources(1)));
    }
  };
  expect_same(reference::stored_as<Half>(floats));
  expect_same(reference::stored_as<BFloat16>(floats));
  expect_same(reference::stored_as<uint8_t>(floats));
  expect_same(reference::stored_as<int8_t>(floats));
}

// A value that the ranges hold is at most half a step from what it is decoded to.
RC_GTEST_PROP(Codec, ScalarErrorsAreHalfAStep, (uint64_t seed)) {
  const int bits = *rc::gen::element(4, 6, 8);
  const int64_t cols = *rc::gen::inRange<int64_t>(1, 40);
  const auto rows = make_floats(Shape::gaussian, 50, cols, seed);
  const auto codec = Codec::train(scalar(bits), rows.view(), 0, cpu_resources(1));
  const auto back = decoded(*codec, encoded(*codec, rows.view(), cpu_resources(1)), cpu_resources(1));
  for (int64_t i = 0; i < rows.rows; ++i) {
    for (int64_t c = 0; c < cols; ++c) {
      const float span = codec->values()[static_cast<size_t>(cols + c)];
      const float step = span / static_cast<float>((1 << bits) - 1);
      RC_ASSERT(std::abs(back.row(i)[c] - rows.row(i)[c]) <= 0.5001f * step + 1e-6f * span);
    }
  }
}

TEST(Codec, ProductCodesAreAsDefined) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const Shape shape : reference::kAllShapes) {
      SCOPED_TRACE(name_of(shape));
      const auto rows = make_floats(shape, 300, 12, 1);
      for (const auto& [parts, bits] : {std::pair<int64_t, int>{3, 4}, {12, 5}, {1, 8}, {4, 6}, {6, 7}}) {
        const auto codec = Codec::train(product(parts, bits), rows.view(), 9, cpu_resources(2));
        expect_definitions(*codec, make_floats(shape, 40, 12, 2), cpu_resources(2));
      }
    }
  }
}

// Encoding what was decoded gives a code of the same vector: each codeword is its own nearest.
RC_GTEST_PROP(Codec, DecodedVectorsEncodeToThemselves, (uint64_t seed)) {
  const int bits = *rc::gen::inRange(4, 9);
  const int64_t parts = *rc::gen::inRange<int64_t>(1, 9);
  const int64_t cols = parts * *rc::gen::inRange<int64_t>(1, 7);
  const auto shape = *rc::gen::element(Shape::gaussian, Shape::near_duplicates, Shape::far_mean, Shape::with_zeros);
  const auto rows = make_floats(shape, 300, cols, seed);
  const auto codec = Codec::train(product(parts, bits), rows.view(), seed, cpu_resources(1));
  const auto back = decoded(*codec, encoded(*codec, rows.view(), cpu_resources(1)), cpu_resources(1));
  const auto again = decoded(*codec, encoded(*codec, back.view(), cpu_resources(1)), cpu_resources(1));
  RC_ASSERT(back.values == again.values);
}

TEST(Codec, StoredValuesAreRoundedToTheNearest) {
  const auto rows = make_floats(Shape::gaussian, 700, 5, 1);
  const auto halves = Codec::train(stored(DType::f16), rows.view(), 0, cpu_resources(2));
  EXPECT_EQ(halves->format().bytes(), 10);
  const auto back = decoded(*halves, encoded(*halves, rows.view(), cpu_resources(2)), cpu_resources(2));
  for (size_t i = 0; i < rows.values.size(); ++i) {
    ASSERT_EQ(back.values[i], static_cast<float>(half_of(rows.values[i])));
  }
  const auto floats = Codec::train(stored(DType::f32), rows.view(), 0, cpu_resources(2));
  EXPECT_EQ(decoded(*floats, encoded(*floats, rows.view(), cpu_resources(2)), cpu_resources(2)).values, rows.values);
  const auto bytes = reference::make_bytes(40, 9, 2);
  const auto kept = Codec::train(stored(DType::u8), bytes.view(), 0, cpu_resources(1));
  EXPECT_EQ(encoded(*kept, bytes.view(), cpu_resources(1)), bytes.values);
  EXPECT_EQ(encoded(*kept, reference::widened(bytes).view(), cpu_resources(1)), bytes.values);
}

TEST(Codec, PartsMakeTheSameCodec) {
  const auto rows = make_floats(Shape::gaussian, 400, 12, 1);
  for (const CodeRecipe& spec : {stored(DType::f16), scalar(6), product(4, 5)}) {
    const auto codec = Codec::train(spec, rows.view(), 3, cpu_resources(2));
    const auto same = Codec::from_parts(codec->format(), codec->values());
    const std::vector<uint8_t> codes = encoded(*codec, rows.view(), cpu_resources(2));
    EXPECT_EQ(encoded(*same, rows.view(), cpu_resources(1)), codes);
    EXPECT_EQ(decoded(*same, codes, cpu_resources(1)).values, decoded(*codec, codes, cpu_resources(2)).values);
    EXPECT_EQ(codec->format().bytes() * 400, static_cast<int64_t>(codes.size()));
  }
}

// Rows apart in memory, and an output apart in memory.
TEST(Codec, StridesAreKept) {
  const auto wide = make_floats(Shape::gaussian, 300, 20, 1);
  const MatrixView rows(wide.row(0) + 4, DType::f32, {300, 12, 20});
  Matrix<float> close(300, 12);
  for (int64_t i = 0; i < 300; ++i) std::copy_n(wide.row(i) + 4, 12, close.row(i));
  for (const CodeRecipe& spec : {stored(DType::bf16), scalar(4), product(3, 5)}) {
    const auto codec = Codec::train(spec, rows, 3, cpu_resources(2));
    EXPECT_EQ(codec->values(), Codec::train(spec, close.view(), 3, cpu_resources(2))->values());
    const std::vector<uint8_t> codes = encoded(*codec, rows, cpu_resources(2));
    EXPECT_EQ(codes, encoded(*codec, close.view(), cpu_resources(2)));
    Matrix<float> out(300, 20);
    codec->decode(codes.data(), 300, {out.row(0) + 5, DType::f32, {300, 12, 20}}, cpu_resources(2));
    const auto expected = decoded(*codec, codes, cpu_resources(1));
    for (int64_t i = 0; i < 300; ++i) {
      EXPECT_TRUE(std::equal(expected.row(i), expected.row(i) + 12, out.row(i) + 5));
      EXPECT_EQ(out.row(i)[4], 0);
      EXPECT_EQ(out.row(i)[17], 0);
    }
  }
}

TEST(Codec, NoRows) {
  const auto rows = make_floats(Shape::gaussian, 30, 6, 1);
  for (const CodeRecipe& spec : {stored(DType::f16), scalar(8), product(2, 4)}) {
    const auto codec = Codec::train(spec, rows.view(), 3, cpu_resources(2));
    codec->encode(rows.view().slice(0, 0), nullptr, cpu_resources(2));
    codec->decode(nullptr, 0, MutableMatrixView(nullptr, DType::f32, {0, 6, 6}), cpu_resources(2));
  }
}

}  // namespace
}  // namespace kith
