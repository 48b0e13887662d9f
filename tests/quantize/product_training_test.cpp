// Codewords against a plain k-means, for any number of threads, and on the data that k-means finds hard.
#include "quantize/product/product_training.hpp"

#include "cluster/fitted.hpp"
#include "quantize/codec.hpp"
#include "reference/codes.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

std::vector<float> trained(const Matrix<float>& rows, int64_t parts, int bits, uint64_t seed, int threads) {
  const CodeRecipe spec{kProductCode, DType::f32, bits, parts};
  return Codec::train(spec, rows.view(), seed, cpu_resources(threads))->values();
}

Matrix<float> part_of(const Matrix<float>& rows, int64_t part, int64_t cols) {
  Matrix<float> out(rows.rows, cols);
  for (int64_t i = 0; i < rows.rows; ++i) std::copy_n(rows.row(i) + part * cols, cols, out.row(i));
  return out;
}

TEST(ProductTraining, EqualsAPlainKMeansOfEachPart) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(name_of(shape));
    const auto rows = make_floats(shape, 230, 6, 4);
    const std::vector<float> codewords = trained(rows, 2, 4, 11, 2);
    for (int64_t p = 0; p < 2; ++p) {
      const auto expected =
          reference::train_codewords(part_of(rows, p, 3), 16, CounterRng(11, static_cast<uint64_t>(p + 1)), 25);
      ASSERT_EQ(std::vector<float>(codewords.begin() + p * 48, codewords.begin() + (p + 1) * 48), expected) << p;
    }
  }
}

TEST(ProductTraining, ThreadsChangeNothing) {
  const auto rows = make_floats(Shape::mixed_norms, 20000, 8, 1);
  const std::vector<float> one = trained(rows, 2, 4, 3, 1);
  EXPECT_EQ(trained(rows, 2, 4, 3, 2), one);
  EXPECT_EQ(trained(rows, 2, 4, 3, 7), one);
  EXPECT_NE(trained(rows, 2, 4, 4, 2), one);  // the seed does
}

TEST(ProductTraining, FewerDistinctRowsThanCodewordsAreAllCodewords) {
  Matrix<float> rows(500, 4);
  for (int64_t i = 0; i < 500; ++i) {
    for (int64_t c = 0; c < 4; ++c) rows.row(i)[c] = i < 450 ? -0.0f : static_cast<float>((i % 9) * (c + 1)) * 0.1f;
  }
  const auto codec = Codec::train({kProductCode, DType::f32, 4, 2}, rows.view(), 1, cpu_resources(2));
  std::vector<uint8_t> codes(500);
  std::vector<float> back(2000);
  codec->encode(rows.view(), codes.data(), cpu_resources(2));
  codec->decode(codes.data(), 500, {back.data(), 500, 4}, cpu_resources(2));
  EXPECT_EQ(back, rows.values);  // -0.0 equals 0.0
}

TEST(ProductTraining, AllRowsEqual) {
  const auto rows = make_floats(Shape::all_equal, 300, 6, 2);
  const std::vector<float> codewords = trained(rows, 3, 8, 0, 2);
  for (size_t i = 0; i < codewords.size(); ++i) EXPECT_EQ(codewords[i], rows.row(0)[i / 512 * 2 + i % 2]);
}

TEST(ProductTraining, OneColumnAndOnePart) {
  const auto rows = make_floats(Shape::gaussian, 900, 1, 2);
  EXPECT_EQ(trained(rows, 1, 5, 7, 2), reference::train_codewords(rows, 32, CounterRng(7, 1), 25));
  const auto wide = make_floats(Shape::gaussian, 300, 5, 2);
  EXPECT_EQ(trained(wide, 1, 4, 7, 2), reference::train_codewords(wide, 16, CounterRng(7, 1), 25));
}

// More rows than training wants are sampled, from arrays and files alike.
TEST(ProductTraining, ManyRowsAreSampled) {
  const auto rows = make_floats(Shape::gaussian, 16 * 256 + 500, 4, 5);
  ViewSource source(rows.view());
  const CodeFormat format{CodeKind::product, 4, DType::f32, 4, 2};
  const ProductSample sample = draw_product_sample(format, {0, format.parts}, source, 8, cpu_resources(2));
  ASSERT_EQ(sample.rows, 16 * 256);
  std::set<std::vector<float>> known;
  for (int64_t i = 0; i < rows.rows; ++i) known.insert(std::vector<float>(rows.row(i), rows.row(i) + 4));
  std::set<std::vector<float>> drawn;
  for (int64_t i = 0; i < sample.rows; ++i) {
    std::vector<float> row(sample.part(0) + 2 * i, sample.part(0) + 2 * i + 2);
    row.insert(row.end(), sample.part(1) + 2 * i, sample.part(1) + 2 * i + 2);
    drawn.insert(row);
    if (known.count(row) == 1) continue;
    // Only values far below the column's largest lose digits.
    bool near = false;
    for (const auto& one : known) {
      float apart = 0;
      for (size_t c = 0; c < 4; ++c) apart = std::max(apart, std::abs(one[c] - row[c]));
      near = near || apart < 1e-9f;
    }
    EXPECT_TRUE(near) << i;
  }
  EXPECT_EQ(drawn.size(), static_cast<size_t>(sample.rows));
}

// Each iteration can only lower the error: what is trained is no worse than rows drawn at random.
TEST(ProductTraining, CodewordsAreBetterThanRows) {
  const auto rows = make_floats(Shape::gaussian, 4000, 8, 6);
  const auto codec = Codec::train({kProductCode, DType::f32, 6, 4}, rows.view(), 2, cpu_resources(2));
  std::vector<float> some;
  for (int64_t p = 0; p < 4; ++p) {
    for (int64_t w = 0; w < 64; ++w) some.insert(some.end(), rows.row(w) + 2 * p, rows.row(w) + 2 * p + 2);
  }
  const auto untrained = Codec::from_parts(codec->format(), some);
  const auto error = [&](const Codec& one) {
    std::vector<uint8_t> codes(static_cast<size_t>(4000 * one.format().bytes()));
    std::vector<float> back(32000);
    one.encode(rows.view(), codes.data(), cpu_resources(2));
    one.decode(codes.data(), 4000, {back.data(), 4000, 8}, cpu_resources(2));
    double total = 0;
    for (size_t i = 0; i < back.size(); ++i) total += std::pow(static_cast<double>(back[i] - rows.values[i]), 2);
    return total;
  };
  EXPECT_LT(error(*codec), 0.75 * error(*untrained));
}

}  // namespace
}  // namespace kith
