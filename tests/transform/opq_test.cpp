// Rotations for product codes: polar factors, codewords, and that codes of rotated rows lose no more.
#include <kith/error.hpp>

#include "kernels/dense/dense.hpp"
#include "kernels/dense/factorisations.hpp"
#include "kernels/forced_target.hpp"
#include "transform/opq.hpp"
#include "transform/random_rotation.hpp"
#include "transform/trained.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

double inner(const Dense& a, const Dense& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.rows() * a.cols(); ++i) sum += a.row(0)[i] * b.row(0)[i];
  return sum;
}

TEST(PolarFactor, IsNearerThanAnyOtherRotation) {
  const Resources resources = cpu_only(2);
  for (const auto& [rows, cols] : {std::array<int64_t, 2>{6, 6}, {4, 9}, {9, 4}, {1, 1}}) {
    for (const int64_t rank : {int64_t{1}, std::min(rows, cols)}) {
      const Dense m(rows, cols, "test", resources);
      for (int64_t k = 0; k < rank; ++k) {
        for (int64_t i = 0; i < rows * cols; ++i) {
          const CounterRng rng(5, static_cast<uint64_t>(k));
          m.row(0)[i] += normal_pair(rng, static_cast<uint64_t>(i / cols)).first *
                         normal_pair(rng, static_cast<uint64_t>(1000 + i % cols)).second;
        }
      }
      const Dense found = polar_factor(m.read(), resources);
      const int64_t small = std::min(rows, cols);
      const Dense squares(small, small, "test", resources);
      const DenseView<const double> wide = rows <= cols ? found.read() : found.read().transposed();
      multiply(wide, wide.transposed(), squares.view(), {}, resources);
      for (int64_t i = 0; i < small; ++i) {
        for (int64_t j = 0; j < small; ++j) EXPECT_NEAR(squares(i, j), i == j ? 1.0 : 0.0, 1e-12);
      }
      for (uint64_t seed = 0; seed < 50; ++seed) {
        EXPECT_GE(inner(found, m) + 1e-9, inner(random_rotation(cols, rows, seed, resources), m));
      }
    }
  }
  const Dense rotation = random_rotation(20, 20, 3, resources);
  const Dense again = polar_factor(rotation.read(), resources);
  for (int64_t i = 0; i < 400; ++i) EXPECT_NEAR(again.row(0)[i], rotation.row(0)[i], 1e-12);
}

// What codes of some rounds of Lloyd's steps lose of the rows, whatever they went through.
double code_error(const Matrix<float>& rows, int64_t parts, const Resources& resources = cpu_only(2)) {
  SubCodebooks codebooks(rows.rows, rows.cols, parts, resources);
  const DenseView<const float> view{rows.values.data(), rows.rows, rows.cols, rows.cols, 1};
  codebooks.start(view, 3);
  for (int step = 0; step < 15; ++step) {
    codebooks.assign(view, resources);
    codebooks.move(view, resources);
  }
  codebooks.assign(view, resources);
  return codebooks.error(view);
}

TEST(SubCodebooks, FindTheNearestCodewordWithEveryInstructionSet) {
  const Matrix<float> rows = make_floats(Shape::gaussian, 700, 12, 1);
  const DenseView<const float> view{rows.values.data(), 700, 12, 12, 1};
  std::vector<float> expected;
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    for (const int64_t parts : {1, 3, 12}) {
      const Resources resources = cpu_only(2);
      SubCodebooks codebooks(700, 12, parts, resources);
      codebooks.start(view, 1);
      double before = HUGE_VAL;
      for (int step = 0; step < 4; ++step) {
        codebooks.assign(view, resources);
        const double error = codebooks.error(view);
        EXPECT_LE(error, before * (1 + 1e-9));
        before = error;
        codebooks.move(view, resources);
        EXPECT_LE(codebooks.error(view), before * (1 + 1e-6));
      }
    }
    Matrix<float> decoded = rows;
    SubCodebooks codebooks(700, 12, 4, cpu_only(3));
    codebooks.start(view, 1);
    codebooks.assign(view, cpu_only(3));
    codebooks.move(view, cpu_only(3));
    codebooks.assign(view, cpu_only(3));
    codebooks.decode({decoded.values.data(), 700, 12, 12, 1}, cpu_only(3));
    if (expected.empty()) expected = decoded.values;
    EXPECT_EQ(decoded.values, expected) << target;
    EXPECT_NEAR(codebooks.error(view), squared_distance(rows, decoded), 1e-6 * codebooks.error(view));
  }
}

TEST(SubCodebooks, LoseNothingOfFewRows) {
  EXPECT_EQ(code_error(make_floats(Shape::gaussian, 100, 8, 1), 2), 0);
  EXPECT_LT(code_error(make_floats(Shape::gaussian, 256, 3, 1), 3), 1e-3);  // values may be as close as sums are exact
  EXPECT_NEAR(code_error(make_floats(Shape::all_equal, 1000, 4, 1), 2), 0, 1e-3);
}

// Columns that depend on others far away, as in no good order of columns.
Matrix<float> mixed(int64_t rows, int64_t cols) {
  const Matrix<float> plain = make_floats(Shape::gaussian, rows, cols, 1);
  const Dense rotation = random_rotation(cols, cols, 17, cpu_only(1));
  Matrix<float> found(rows, cols);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      double sum = 5;
      for (int64_t c = 0; c < cols; ++c) {
        sum += rotation(j, c) * static_cast<double>(plain.row(i)[c]) * std::pow(0.7, static_cast<double>(c));
      }
      found.row(i)[j] = static_cast<float>(sum);
    }
  }
  return found;
}

TEST(Opq, LosesLessThanCodesOfTheRowsAsTheyAre) {
  const Matrix<float> rows = mixed(1500, 16);
  const double plain = code_error(rows, 4);
  const TransformChain square = trained({{TransformKind::opq, 16, 4}}, rows);
  EXPECT_LT(code_error(applied(square, rows), 4), 0.8 * plain);
  // Columns that are in a good order stay so.
  Matrix<float> ordered = make_floats(Shape::gaussian, 1500, 16, 1);
  for (int64_t i = 0; i < 1500; ++i) {
    for (int64_t c = 0; c < 16; ++c) ordered.row(i)[c] = ordered.row(i)[c / 4 * 4] + 0.01f * ordered.row(i)[c];
  }
  const TransformChain kept = trained({{TransformKind::opq, 16, 4}}, ordered);
  EXPECT_LT(code_error(applied(kept, ordered), 4), 1.05 * code_error(ordered, 4));
}

TEST(Opq, GoesToFewerAndMoreColumns) {
  const Matrix<float> rows = mixed(800, 12);
  for (const auto& [out, parts] : {std::array<int64_t, 2>{12, 3}, {6, 2}, {20, 5}, {12, 12}, {12, 1}, {1, 1}}) {
    const TransformChain chain = trained({{TransformKind::opq, out, parts}}, rows);
    EXPECT_EQ(chain.out(), out);
    EXPECT_TRUE(chain.reversible());
    const Matrix<float> back = reversed(chain, applied(chain, rows));
    EXPECT_LT(squared_distance(back, rows), out >= 12 ? 1e-6 : HUGE_VAL);
  }
  // What is dropped is what rows have least of.
  const TransformChain some = trained({{TransformKind::opq, 4, 2}}, rows);
  const TransformChain best = trained({{TransformKind::pca, 4}}, rows);
  Matrix<float> centred = applied(trained({{TransformKind::centring}}, rows), rows);
  EXPECT_LT(squared_distance(reversed(some, applied(some, centred)), centred),
            1.2 * squared_distance(reversed(best, applied(best, rows)), rows));
}

TEST(Opq, GivesTheSameBytesHoweverItIsTrained) {
  const Matrix<float> rows = mixed(600, 8);
  const std::vector<TransformSpec> specs = {{TransformKind::opq, 8, 2}};
  const std::vector<float> expected = trained(specs, rows, 5, cpu_only(1)).parts()[0].matrix;
  EXPECT_EQ(trained(specs, rows, 5, cpu_only(4)).parts()[0].matrix, expected);
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    EXPECT_EQ(trained(specs, rows, 5, cpu_only(2)).parts()[0].matrix, expected) << target;
  }
}

TEST(Opq, TakesHardRows) {
  for (const Shape shape : reference::kAllShapes) {
    for (const auto& [count, cols] : {std::array<int64_t, 2>{300, 6}, {5, 6}, {1, 2}}) {
      const Matrix<float> rows = make_floats(shape, count, cols, 1);
      const TransformChain chain = trained({{TransformKind::opq, cols, 2}}, rows);
      EXPECT_TRUE(chain.reversible()) << shape;
    }
  }
  Matrix<float> constant = mixed(400, 6);
  for (int64_t i = 0; i < 400; ++i) constant.row(i)[2] = 7;
  EXPECT_TRUE(trained({{TransformKind::opq, 6, 3}}, constant).reversible());
}

TEST(Opq, RefusesPartsThatDoNotDivide) {
  const Matrix<float> rows = make_floats(Shape::gaussian, 10, 6, 1);
  EXPECT_THROW(trained({{TransformKind::opq, 6, 4}}, rows), InvalidArgument);
  EXPECT_THROW(trained({{TransformKind::opq, 6, 0}}, rows), InvalidArgument);
  EXPECT_THROW(trained({{TransformKind::opq, 0, 2}}, Matrix<float>(0, 6)), InvalidArgument);
}

}  // namespace
}  // namespace kith
