// Norms behind additive codes: their bits, the levels that are trained, and the key that they make.
#include "kernels/codes/code_norm.hpp"
#include "quantize/additive/code_norms.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace kith {
namespace {

CodeFormat additive(int64_t parts, int bits, CodeNorm norm) {
  CodeFormat format;
  format.kind = CodeKind::additive;
  format.cols = 4;
  format.parts = parts;
  format.bits = bits;
  format.norm = norm;
  return format;
}

TEST(CodeNorm, BytesOfACode) {
  EXPECT_EQ(additive(7, 8, CodeNorm::cqint8).bytes(), 8);
  EXPECT_EQ(additive(15, 8, CodeNorm::qint8).bytes(), 16);
  EXPECT_EQ(additive(8, 8, CodeNorm::float32).bytes(), 12);
  EXPECT_EQ(additive(8, 8, CodeNorm::none).bytes(), 8);
  EXPECT_EQ(additive(5, 6, CodeNorm::qint8).bytes(), 5);
  EXPECT_EQ(additive(5, 7, CodeNorm::float32).bytes(), 9);
}

// Bits of a norm come back, and those of the books before them stay.
TEST(CodeNorm, BitsBehindTheBooks) {
  std::mt19937 random(1);
  for (int bits = 1; bits <= 8; ++bits) {
    for (const int64_t parts : {1, 3, 7, 8}) {
      for (const CodeNorm norm : {CodeNorm::float32, CodeNorm::qint8, CodeNorm::cqint8}) {
        const CodeFormat format = additive(parts, bits, norm);
        std::vector<uint8_t> code(static_cast<size_t>(format.bytes()) + 1);
        for (uint8_t& byte : code) byte = static_cast<uint8_t>(random());
        std::vector<uint32_t> books;
        for (int64_t p = 0; p < parts; ++p) books.push_back(sub_code(code.data(), p, bits));
        const uint8_t behind = code.back();
        const auto wanted = static_cast<uint32_t>(random()) & (norm == CodeNorm::float32 ? 0xFFFFFFFFu : 0xFFu);
        set_norm_bits(format, wanted, code.data());
        EXPECT_EQ(norm_bits_of(format, code.data()), wanted) << parts << " x " << bits;
        for (int64_t p = 0; p < parts; ++p) EXPECT_EQ(sub_code(code.data(), p, bits), books[static_cast<size_t>(p)]);
        EXPECT_EQ(code.back(), behind);
      }
    }
  }
}

TEST(CodeNorm, NearestLevelTiesToTheSmaller) {
  std::vector<float> levels(256);
  for (size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<float>(255 - i) * 2;  // any order will do
  CodecView codec;
  codec.format = additive(1, 8, CodeNorm::cqint8);
  codec.levels = levels.data();
  EXPECT_EQ(norm_code(codec, 510.0f), 0u);
  EXPECT_EQ(norm_code(codec, 0.0f), 255u);
  EXPECT_EQ(norm_code(codec, 1e9f), 0u);
  EXPECT_EQ(norm_code(codec, 7.0f), 251u);  // 8, not 6, of which it is as far
  EXPECT_EQ(norm_code(codec, 6.9f), 252u);
  std::vector<uint8_t> code(2);
  set_norm_bits(codec.format, norm_code(codec, 6.9f), code.data());
  EXPECT_EQ(code_norm(codec, code.data()), 6.0f);
}

TEST(CodeNorm, FloatsAreKeptAsTheyAre) {
  CodecView codec;
  codec.format = additive(3, 5, CodeNorm::float32);
  std::vector<uint8_t> code(static_cast<size_t>(codec.format.bytes()));
  for (const float norm : {0.0f, 1.5f, 3e38f, std::numeric_limits<float>::infinity(), 1e-42f}) {
    set_norm_bits(codec.format, norm_code(codec, norm), code.data());
    EXPECT_EQ(code_norm(codec, code.data()), norm);
  }
}

TEST(CodeNorm, LevelsOfEqualSteps) {
  const std::vector<float> values = train_norm_values(CodeNorm::qint8, {5.0f, 1.0f, 257.0f, INFINITY});
  EXPECT_EQ(values, (std::vector<float>{1.0f, 257.0f}));
  const std::vector<float> levels = norm_levels(additive(0, 8, CodeNorm::qint8), values);
  ASSERT_EQ(levels.size(), 256u);
  EXPECT_EQ(levels[0], 1.5f);
  EXPECT_EQ(levels[255], 256.5f);
}

// No level of a local optimum is away from the mean of the norms that are nearest to it, and 256 levels serve norms
// better than 256 equal steps.
TEST(CodeNorm, TrainedLevelsAreMeans) {
  std::mt19937 random(3);
  std::vector<float> norms(20000);
  for (float& norm : norms) norm = std::exp(std::ldexp(static_cast<float>(random() >> 8), -22));
  const auto error = [&](CodeNorm kind) {
    const CodeFormat format = additive(0, 8, kind);
    const std::vector<float> levels = norm_levels(format, train_norm_values(kind, norms));
    CodecView codec;
    codec.format = format;
    codec.levels = levels.data();
    double sum = 0;
    std::vector<double> sums(256), counts(256);
    for (const float norm : norms) {
      const uint32_t level = norm_code(codec, norm);
      sums[level] += norm;
      counts[level] += 1;
      sum += std::pow(static_cast<double>(norm) - levels[level], 2);
    }
    for (size_t i = 0; kind == CodeNorm::cqint8 && i < 256; ++i) {
      if (counts[i] == 0) continue;
      EXPECT_NEAR(levels[i], sums[i] / counts[i], 1e-2) << i;
    }
    return sum;
  };
  EXPECT_LT(error(CodeNorm::cqint8), 0.8 * error(CodeNorm::qint8));
}

TEST(CodeNorm, FewOrEqualNorms) {
  EXPECT_EQ(train_norm_values(CodeNorm::cqint8, {2.0f, 2.0f, 2.0f}), std::vector<float>(256, 2.0f));
  const std::vector<float> levels = train_norm_values(CodeNorm::cqint8, {1.0f, 4.0f});
  EXPECT_EQ(levels.front(), 1.0f);
  EXPECT_EQ(train_norm_values(CodeNorm::float32, {1.0f}), std::vector<float>());
  EXPECT_EQ(train_norm_values(CodeNorm::qint8, {}), (std::vector<float>{0.0f, 0.0f}));
}

TEST(CodeNorm, KeysAreNeverBelowZero) {
  EXPECT_EQ(norm_key(KeyKind::squared_l2, 4.0, 4.0, 3.0f), 0.0f);
  EXPECT_EQ(norm_key(KeyKind::l2, 4.0, 2.0, 9.0f), 3.0f);
  EXPECT_EQ(norm_key(KeyKind::squared_l2, 4.0, 2.0, 9.0f), 9.0f);
  EXPECT_TRUE(std::isnan(norm_key(KeyKind::l2, NAN, 2.0, 9.0f)));
}

}  // namespace
}  // namespace kith
