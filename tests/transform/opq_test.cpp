// Rotations for product codes: nearest rotations, codewords, and that codes of rotated rows lose no more.
#include <kith/error.hpp>

#include "kernels/dense/dense.hpp"
#include "kernels/forced_target.hpp"
#include "transform/random_rotation.hpp"
#include "transform/rotation_steps.hpp"
#include "transform/sub_codebooks.hpp"
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

// The steps that find the nearest rotation, of any M, in float64.
class PlainSteps final : public RotationSteps {
 public:
  PlainSteps(const Dense& products, const Dense& before)
      : m_(products.read()), before_(before.read()), x_(copy_of(m_)), squares_(side(), side(), "test", cpu_only(1)) {}

  void begin_nearest(float share) override {
    multiply(wide(m_), wide(m_).transposed(), squares_.view(), {}, cpu_only(1));
    double largest = 0;
    for (int64_t i = 0; i < side(); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < side(); ++j) sum += std::abs(squares_(i, j));
      largest = std::max(largest, sum);
    }
    const double scale = scale_of_bound(largest);
    for (int64_t i = 0; i < m_.rows; ++i) {
      for (int64_t j = 0; j < m_.cols; ++j) x_(i, j) = scale * m_(i, j) + static_cast<double>(share) * before_(i, j);
    }
  }
  void square_nearest() override {
    multiply(wide(x_.read()), wide(x_.read()).transposed(), squares_.view(), {}, cpu_only(1));
  }
  double departure() override {
    double total = 0;
    for (int64_t i = 0; i < side(); ++i) {
      for (int64_t j = 0; j < side(); ++j) {
        total += departure_squared(static_cast<float>(squares_(i, j)), i == j);
      }
    }
    return total;
  }
  void refine_nearest(float own, float squared) override {
    for (int64_t i = 0; i < side(); ++i) {
      for (int64_t j = 0; j < side(); ++j) squares_(i, j) = squares_(i, j) * squared + (i == j ? own : 0.0f);
    }
    const Dense old = copy_of(x_.read());
    if (x_.rows() <= x_.cols()) {
      multiply(squares_.read(), old.read(), x_.view(), {}, cpu_only(1));
    } else {
      multiply(old.read(), squares_.read(), x_.view(), {}, cpu_only(1));
    }
    ++steps_;
  }
  void take_nearest() override { taken_ = true; }

  PrincipalAxes load(const TrainingRows&) override { return {}; }
  void set_rotation(const Dense&) override {}
  void get_rotation(float*) override {}
  void turn() override {}
  void start_codewords(uint64_t) override {}
  void assign() override {}
  void move_codewords() override {}
  double code_error() override { return 0; }
  void get_codewords(float*) override {}
  void set_codewords(const float*) override {}
  void multiply_decoded() override {}

  const Dense& found() const { return x_; }
  bool taken() const { return taken_; }
  int steps() const { return steps_; }

 private:
  static Dense copy_of(DenseView<const double> from) {
    Dense copy(from.rows, from.cols, "test", cpu_only(1));
    for (int64_t i = 0; i < from.rows; ++i) std::copy_n(from.row(i), from.cols, copy.row(i));
    return copy;
  }
  static DenseView<const double> wide(DenseView<const double> m) { return m.rows > m.cols ? m.transposed() : m; }
  int64_t side() const { return std::min(m_.rows, m_.cols); }

  DenseView<const double> m_;
  DenseView<const double> before_;
  Dense x_;
  Dense squares_;
  bool taken_ = false;
  int steps_ = 0;
};

TEST(NearestRotation, IsNearerThanAnyOther) {
  const Resources resources = cpu_only(2);
  for (const auto& [rows, cols] : {std::array<int64_t, 2>{6, 6}, {4, 9}, {9, 4}, {1, 1}, {48, 64}}) {
    for (const int64_t rank : {int64_t{0}, int64_t{1}, std::min(rows, cols)}) {
      const Dense m(rows, cols, "test", resources);
      for (int64_t k = 0; k < rank; ++k) {
        for (int64_t i = 0; i < rows * cols; ++i) {
          const CounterRng rng(5, static_cast<uint64_t>(k));
          m.row(0)[i] += normal_pair(rng, static_cast<uint64_t>(i / cols)).first *
                         normal_pair(rng, static_cast<uint64_t>(1000 + i % cols)).second;
        }
      }
      const Dense before = random_rotation(cols, rows, 77, resources);
      PlainSteps steps(m, before);
      take_nearest_rotation(steps);
      EXPECT_TRUE(steps.taken()) << rows << " x " << cols << " of rank " << rank;
      EXPECT_LT(steps.steps(), 50);
      steps.square_nearest();
      EXPECT_LT(steps.departure(), 1e-6);
      for (uint64_t seed = 0; seed < 50; ++seed) {
        EXPECT_GE(inner(steps.found(), m) * (1 + 1e-3) + 1e-9, inner(random_rotation(cols, rows, seed, resources), m));
      }
    }
  }
  const Dense rotation = random_rotation(20, 20, 3, resources);
  PlainSteps again(rotation, random_rotation(20, 20, 4, resources));
  take_nearest_rotation(again);
  for (int64_t i = 0; i < 400; ++i) EXPECT_NEAR(again.found().row(0)[i], rotation.row(0)[i], 1e-3);
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
  return codebooks.error(view, resources);
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
        const double error = codebooks.error(view, resources);
        EXPECT_LE(error, before * (1 + 1e-9));
        before = error;
        codebooks.move(view, resources);
        EXPECT_LE(codebooks.error(view, resources), before * (1 + 1e-6));
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
    const double lost = codebooks.error(view, cpu_only(3));
    EXPECT_NEAR(lost, squared_distance(rows, decoded), 1e-6 * lost);
  }
}

TEST(SubCodebooks, LoseNothingOfFewRows) {
  EXPECT_LT(code_error(make_floats(Shape::gaussian, 100, 8, 1), 2), 1e-12);  // means are of rounded values
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
