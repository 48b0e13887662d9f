// The public classes: what they share with Codec, and what is theirs alone.
#include <kith/error.hpp>
#include <kith/product_quantizer.hpp>
#include <kith/scalar_quantizer.hpp>

#include "cluster/fitted.hpp"
#include "kernels/distance/canonical.hpp"
#include "quantize/codec.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;
using ::testing::HasSubstr;

template <typename Error, typename Action>
std::string quantizer_refused(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

template <typename Quantizer>
std::vector<uint8_t> encoded(const Quantizer& quantizer, const MatrixView& rows) {
  std::vector<uint8_t> codes(static_cast<size_t>(rows.rows() * quantizer.code_bytes()));
  quantizer.encode(rows, MutableMatrixView(codes.data(), rows.rows(), quantizer.code_bytes()), cpu_resources(2));
  return codes;
}

TEST(Quantizers, AreTheCodecs) {
  const auto rows = make_floats(Shape::gaussian, 700, 12, 1);
  const auto expect_same = [&](auto& quantizer, const CodeRecipe& spec) {
    EXPECT_FALSE(quantizer.trained());
    EXPECT_EQ(quantizer.dimension(), 0);
    quantizer.train(rows.view(), cpu_resources(2));
    const auto codec = Codec::train(spec, rows.view(), 3, cpu_resources(1));
    EXPECT_EQ(quantizer.values(), codec->values());
    EXPECT_EQ(quantizer.code_bytes(), codec->format().bytes());
    const std::vector<uint8_t> codes = encoded(quantizer, rows.view());
    std::vector<uint8_t> expected(codes.size());
    codec->encode(rows.view(), expected.data(), cpu_resources(1));
    EXPECT_EQ(codes, expected);
    // Every second code.
    const MatrixView every_second(codes.data(), DType::u8, {350, quantizer.code_bytes(), 2 * quantizer.code_bytes()});
    Matrix<float> all(700, 12);
    Matrix<float> some(350, 12);
    quantizer.decode({codes.data(), 700, quantizer.code_bytes()}, {all.row(0), 700, 12}, cpu_resources(2));
    quantizer.decode(every_second, {some.row(0), 350, 12}, cpu_resources(2));
    for (int64_t i = 0; i < 350; ++i) EXPECT_TRUE(std::equal(some.row(i), some.row(i) + 12, all.row(2 * i)));
  };
  ProductQuantizer product({3, 4, 3, true});
  expect_same(product, {kProductCode, DType::f32, 4, 3});
  ScalarQuantizer scalar({6, true});
  expect_same(scalar, {kScalarCode, DType::f32, 6, 0});
  ScalarQuantizer halves({16, true});
  expect_same(halves, {kStoredCode, DType::f16, 8, 0});
}

TEST(Quantizers, LookupTablesHoldCanonicalValues) {
  const auto rows = make_floats(Shape::far_mean, 700, 6, 1);
  ProductQuantizer product({2, 4, 0, true});
  product.train(rows.view(), cpu_resources(2));
  ScalarQuantizer scalar({4, true});
  scalar.train(rows.view(), cpu_resources(2));
  const std::vector<float> words = product.values();
  Matrix<float> table(5, 32);
  const MutableMatrixView out(table.row(0), 5, 32);
  product.lookup_table(rows.view().slice(0, 5), Metric::sqeuclidean, out, cpu_resources(2));
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t e = 0; e < 32; ++e) {
      const float* const q = rows.row(i) + e / 16 * 3;
      ASSERT_EQ(table.row(i)[e], canonical_pair<KeyKind::squared_l2>(q, words.data() + e * 3, 3));
    }
  }
  product.lookup_table(rows.view().slice(0, 5), Metric::inner_product, out, cpu_resources(2));
  ASSERT_EQ(table.row(4)[31], -canonical_pair<KeyKind::inner_product>(rows.row(4) + 3, words.data() + 93, 3));

  std::vector<uint8_t> codes(48);  // every code of every column
  for (size_t i = 0; i < 48; ++i) codes[i] = static_cast<uint8_t>(i / 3 * 17);
  Matrix<float> values(16, 6);
  scalar.decode({codes.data(), 16, 3}, {values.row(0), 16, 6}, cpu_resources(1));
  Matrix<float> columns(1, 96);
  scalar.lookup_table(rows.view().slice(9, 1), Metric::sqeuclidean, {columns.row(0), 1, 96}, cpu_resources(1));
  for (int64_t e = 0; e < 96; ++e) {
    const double apart = static_cast<double>(rows.row(9)[e / 16]) - static_cast<double>(values.row(e % 16)[e / 16]);
    ASSERT_EQ(columns.row(0)[e], static_cast<float>(apart * apart)) << e;
  }
}

TEST(Quantizers, Errors) {
  auto rows = make_floats(Shape::gaussian, 100, 12, 1);
  EXPECT_THAT(quantizer_refused<InvalidArgument>([] { ProductQuantizer({0, 8, 0, true}); }), HasSubstr("parts = 0"));
  EXPECT_THAT(quantizer_refused<InvalidArgument>([] { ProductQuantizer({2, 3, 0, true}); }), HasSubstr("bits = 3"));
  EXPECT_THAT(quantizer_refused<InvalidArgument>([] {
                ScalarQuantizer({7, true});
              }),
              HasSubstr("4, 6, 8, or 16 for f16"));
  ScalarQuantizer scalar({8, true});
  EXPECT_THAT(quantizer_refused<InvalidState>([&] { scalar.values(); }), HasSubstr("not trained; call train first"));
  scalar.train(rows.view(), cpu_resources(1));
  const std::vector<float> before = scalar.values();
  rows.row(40)[2] = INFINITY;
  EXPECT_THAT(quantizer_refused<InvalidArgument>([&] { scalar.train(rows.view(), cpu_resources(1)); }),
              HasSubstr("40"));
  EXPECT_EQ(scalar.values(), before);
  EXPECT_THAT(quantizer_refused<InvalidArgument>([&] { encoded(scalar, rows.view()); }), HasSubstr("40"));
  std::vector<uint8_t> codes(2000);
  const auto wide = [&] {
    scalar.encode(rows.view().slice(0, 9), MutableMatrixView(codes.data(), DType::u8, {9, 12, 13}), cpu_resources(1));
  };
  EXPECT_THAT(quantizer_refused<InvalidArgument>(wide), HasSubstr("codes lie 13 bytes apart"));
  std::vector<float> table(12 * 256);
  const auto of_metric = [&](Metric metric) {
    return quantizer_refused<InvalidArgument>([&] {
      scalar.lookup_table(rows.view().slice(0, 1), metric, {table.data(), 1, 12 * 256}, cpu_resources(1));
    });
  };
  EXPECT_THAT(of_metric(Metric::l2), HasSubstr("a lookup table of l2; it can be of sqeuclidean or inner_product"));
  ProductQuantizer product({3, 4, 0, true});
  EXPECT_THAT(quantizer_refused<InvalidArgument>([&] {
                product.set_values({table.data(), 100, {}});
              }),
              HasSubstr("100 values of codewords; 3 parts of 16 codewords have a multiple of 48"));
  product.set_values({table.data(), 480, {}});
  EXPECT_EQ(product.dimension(), 30);
}

// Whoever encodes while another trains has the ranges of before or after.
TEST(Quantizers, TrainingWhileOthersEncode) {
  const auto small = make_floats(Shape::gaussian, 500, 8, 1);
  const auto large = make_floats(Shape::mixed_norms, 500, 8, 2);
  ScalarQuantizer quantizer({8, true});
  const auto codes_after = [&](const Matrix<float>& rows) {
    quantizer.train(rows.view(), cpu_resources(1));
    return encoded(quantizer, small.view());
  };
  const std::vector<uint8_t> either[] = {codes_after(small), codes_after(large)};
  std::thread trains([&] {
    for (int i = 0; i < 50; ++i) quantizer.train(i % 2 == 0 ? small.view() : large.view(), cpu_resources(1));
  });
  for (int i = 0; i < 50; ++i) {
    const std::vector<uint8_t> codes = encoded(quantizer, small.view());
    EXPECT_TRUE(codes == either[0] || codes == either[1]);
  }
  trains.join();
}

TEST(Quantizers, TooSmallALimitNamesOneThatDoes) {
  const auto rows = make_floats(Shape::gaussian, 700, 12, 1);
  ProductQuantizer quantizer({.parts = 3, .bits = 5});
  quantizer.train(rows.view(), cpu_resources(2));
  const int64_t bytes = quantizer.code_bytes();
  const std::vector<uint8_t> free = encoded(quantizer, rows.view());
  std::vector<uint8_t> codes(free.size());
  Matrix<float> out(700, 12);
  const auto encode = [&](const Resources& resources) {
    quantizer.encode(rows.view(), MutableMatrixView(codes.data(), 700, bytes), resources);
  };
  const auto decode = [&](const Resources& resources) {
    quantizer.decode(MatrixView(free.data(), 700, bytes), MutableMatrixView(out.row(0), 700, 12), resources);
  };
  int64_t needed = 0;
  try {
    encode(cpu_resources(2, 1));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const OutOfMemory& error) {
    needed = error.bytes_needed();
    EXPECT_THAT(error.what(), HasSubstr("would do"));
  }
  encode(cpu_resources(2, needed));
  decode(cpu_resources(2, 1));
  EXPECT_EQ(codes, free);
}

}  // namespace
}  // namespace kith
