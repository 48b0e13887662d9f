// What training promises: variances in order, distances kept, the same bytes however it is done, hard data.
#include <kith/error.hpp>

#include "kernels/forced_target.hpp"
#include "transform/random_rotation.hpp"
#include "transform/trained.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

// Columns of different sizes that depend on each other.
Matrix<float> correlated(int64_t rows, int64_t cols, uint64_t seed) {
  const Matrix<float> plain = make_floats(Shape::gaussian, rows, cols, seed);
  Matrix<float> mixed(rows, cols);
  const Dense rotation = random_rotation(cols, cols, 17, cpu_only(1));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      double sum = 3;
      for (int64_t c = 0; c < cols; ++c) {
        sum += rotation(j, c) * static_cast<double>(plain.row(i)[c]) * std::pow(0.8, static_cast<double>(c));
      }
      mixed.row(i)[j] = static_cast<float>(sum);
    }
  }
  return mixed;
}

std::vector<double> variances(const Matrix<float>& rows) {
  std::vector<double> found;
  for (int64_t c = 0; c < rows.cols; ++c) {
    double sum = 0;
    double squares = 0;
    for (int64_t i = 0; i < rows.rows; ++i) {
      const auto value = static_cast<double>(rows.row(i)[c]);
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(rows.rows);
    found.push_back(squares / count - sum / count * (sum / count));
  }
  return found;
}

double departure(const TransformParts& parts) {
  const bool wide = parts.out <= parts.in;
  const int64_t count = wide ? parts.out : parts.in;
  const int64_t length = wide ? parts.in : parts.out;
  const auto at = [&](int64_t i, int64_t k) {
    return static_cast<double>(parts.matrix[static_cast<size_t>(wide ? i * parts.in + k : k * parts.in + i)]);
  };
  double most = 0;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < count; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < length; ++k) sum += at(i, k) * at(j, k);
      most = std::max(most, std::abs(sum - (i == j ? 1.0 : 0.0)));
    }
  }
  return most;
}

TEST(Pca, PutsTheLargestVariancesFirstAndLosesTheLeast) {
  const Matrix<float> rows = correlated(2000, 20, 1);
  const TransformChain whole = trained({{TransformKind::pca}}, rows);
  EXPECT_LT(departure(whole.parts()[1]), 1e-6);
  const Matrix<float> turned = applied(whole, rows);
  const std::vector<double> found = variances(turned);
  double total = 0;
  for (size_t c = 0; c < found.size(); ++c) {
    EXPECT_LE(found[c], found[c > 0 ? c - 1 : 0] * (1 + 1e-6));
    total += found[c];
  }
  double given = 0;
  for (const double variance : variances(rows)) given += variance;
  EXPECT_NEAR(total, given, 1e-4 * given);
  // Columns do not depend on each other any more.
  for (int64_t a = 0; a < 20; ++a) {
    for (int64_t b = 0; b < a; ++b) {
      double sum = 0;
      for (int64_t i = 0; i < rows.rows; ++i) {
        sum += static_cast<double>(turned.row(i)[a]) * static_cast<double>(turned.row(i)[b]);
      }
      EXPECT_NEAR(sum / 2000, 0, 1e-5 * found[0]);
    }
  }
  // What fewer columns lose is what the others hold.
  for (const int64_t kept : {1, 5, 19}) {
    const TransformChain some = trained({{TransformKind::pca, kept}}, rows);
    double lost = 0;
    for (size_t c = static_cast<size_t>(kept); c < found.size(); ++c) lost += found[c];
    const double error = squared_distance(rows, reversed(some, applied(some, rows))) / 2000;
    EXPECT_NEAR(error, lost, 1e-4 * given);
  }
}

TEST(RandomRotation, KeepsDistances) {
  const Matrix<float> rows = make_floats(Shape::gaussian, 30, 15, 1);
  for (const int64_t out : {15, 40}) {
    const TransformChain chain = trained({{TransformKind::random_rotation, out}}, rows);
    EXPECT_LT(departure(chain.parts()[0]), 1e-6);
    const Matrix<float> turned = applied(chain, rows);
    for (int64_t i = 0; i < 30; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        const double before = reference::distance(Metric::l2, rows.row(i), rows.row(j), 15);
        EXPECT_NEAR(reference::distance(Metric::l2, turned.row(i), turned.row(j), out), before, 1e-5 * before);
      }
    }
  }
}

std::vector<float> bytes_of(const TransformChain& chain) {
  std::vector<float> all;
  for (const TransformParts& parts : chain.parts()) {
    all.insert(all.end(), parts.matrix.begin(), parts.matrix.end());
    all.insert(all.end(), parts.offset.begin(), parts.offset.end());
  }
  return all;
}

const std::vector<TransformSpec> kManySteps = {{TransformKind::centring},
                                               {TransformKind::pca, 12},
                                               {TransformKind::random_rotation, 16},
                                               {TransformKind::unit_length}};

TEST(TransformTraining, GivesTheSameBytesForAnyThreadsLimitAndInstructionSet) {
  const Matrix<float> rows = correlated(4500, 24, 3);
  const std::vector<float> expected = bytes_of(trained(kManySteps, rows, 5, cpu_only(1)));
  EXPECT_EQ(bytes_of(trained(kManySteps, rows, 5, cpu_only(4))), expected);
  EXPECT_EQ(bytes_of(trained(kManySteps, rows, 5, cpu_only(2, 8 << 20))), expected);
  EXPECT_NE(bytes_of(trained(kManySteps, rows, 6, cpu_only(2))), expected);
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    EXPECT_EQ(bytes_of(trained(kManySteps, rows, 5, cpu_only(2))), expected) << target;
  }
}

TEST(TransformTraining, TakesHardRows) {
  for (const Shape shape : reference::kAllShapes) {
    for (const auto& [count, cols] : {std::array<int64_t, 2>{200, 7}, {5, 30}, {1, 4}, {40, 1}}) {
      const Matrix<float> rows = make_floats(shape, count, cols, 1);
      for (const TransformSpec& spec : {TransformSpec{TransformKind::pca}, {TransformKind::pca, 1}}) {
        const TransformChain chain = trained({spec}, rows);
        EXPECT_LT(departure(chain.parts()[1]), 1e-6) << shape;
        for (const float value : applied(chain, rows).values) EXPECT_TRUE(std::isfinite(value)) << shape;
      }
    }
  }
  Matrix<float> constant = correlated(100, 6, 1);
  for (int64_t i = 0; i < 100; ++i) constant.row(i)[2] = 7;
  const TransformChain chain = trained({{TransformKind::pca}}, constant);
  EXPECT_NEAR(variances(applied(chain, constant)).back(), 0, 1e-9);
}

TEST(TransformTraining, SaysWhatIsWrong) {
  const Matrix<float> rows = make_floats(Shape::gaussian, 10, 6, 1);
  EXPECT_THROW(trained({{TransformKind::pca, 7}}, rows), InvalidArgument);
  EXPECT_THROW(trained({{TransformKind::pca, -1}}, rows), InvalidArgument);
  EXPECT_THROW(trained({{TransformKind::padding, 5}}, rows), InvalidArgument);
  EXPECT_THROW(trained({{TransformKind::centring, 5}}, rows), InvalidArgument);
  EXPECT_THROW(trained({{TransformKind::pca, 2}}, Matrix<float>(0, 6)), InvalidArgument);
  EXPECT_EQ(trained({{TransformKind::padding, 8}}, Matrix<float>(0, 6)).out(), 8);
  Matrix<float> bad = rows;
  bad.row(4)[2] = NAN;
  try {
    (void)trained({{TransformKind::pca, 2}}, bad);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("row 4"));
  }
  EXPECT_THROW(trained({{TransformKind::pca, 2}}, rows, 1, cpu_only(1, 1000)), OutOfMemory);
}

}  // namespace
}  // namespace kith
