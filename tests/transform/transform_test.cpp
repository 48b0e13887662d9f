// What a step gives out, bit by bit against the definition, and the way back.
#include <kith/error.hpp>

#include "kernels/distance/canonical.hpp"
#include "kernels/forced_target.hpp"
#include "transform/random_rotation.hpp"
#include "transform/trained.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;
using reference::stored_as;
using Kind = TransformParts::Kind;

// The definition, one value at a time.
Matrix<float> reference_of(const TransformParts& parts, const Matrix<float>& rows) {
  Matrix<float> out(rows.rows, parts.out);
  for (int64_t i = 0; i < rows.rows; ++i) {
    const float* const x = rows.row(i);
    for (int64_t j = 0; j < parts.out; ++j) {
      float& y = out.row(i)[j];
      switch (parts.kind) {
        case Kind::linear: {
          std::vector<float> row(x, x + parts.in);
          std::vector<float> axis(parts.matrix.begin() + j * parts.in, parts.matrix.begin() + (j + 1) * parts.in);
          if (!parts.offset.empty()) {
            row.push_back(1.0f);
            axis.push_back(parts.offset[static_cast<size_t>(j)]);
          }
          const auto cols = static_cast<int64_t>(row.size());
          y = 0.0f - canonical_pair<KeyKind::inner_product>(row.data(), axis.data(), cols);
          break;
        }
        case Kind::shift: y = x[j] + parts.offset[static_cast<size_t>(j)]; break;
        case Kind::unit_length: {
          const double inverse = canonical_inverse_norm(canonical_squared_norm(x, parts.in));
          y = static_cast<float>(static_cast<double>(x[j]) * inverse);
          break;
        }
        case Kind::padding: y = j < parts.in ? x[j] : 0.0f; break;
      }
    }
  }
  return out;
}

std::vector<float> some_values(int64_t count, uint64_t seed) {
  return make_floats(Shape::gaussian, 1, count, seed).values;
}

std::vector<TransformParts> some_parts(int64_t in) {
  std::vector<TransformParts> all;
  all.push_back({Kind::linear, "a matrix", in, 5, some_values(5 * in, 1), {}});
  all.push_back(
      {Kind::linear, "a matrix and an offset", in, in + 3, some_values((in + 3) * in, 2), some_values(in + 3, 3)});
  all.push_back({Kind::shift, "a shift", in, in, {}, some_values(in, 4)});
  all.push_back({Kind::unit_length, "a scaling", in, in, {}, {}});
  all.push_back({Kind::padding, "zeros", in, in + 7, {}, {}});
  return all;
}

template <typename T>
void check_all(int64_t rows, int64_t in, Shape shape) {
  const Matrix<T> given = stored_as<T>(make_floats(shape, rows, in, 11));
  const Matrix<float> wide = reference::widened(given);
  for (const TransformParts& parts : some_parts(in)) {
    const TransformChain step = TransformChain::from_parts({parts}, cpu_only(1));
    const Matrix<float> truth = reference_of(parts, wide);
    for (const std::string& target : targets_for_next_case()) {
      const ForcedTarget forced(target);
      EXPECT_EQ(applied(step, given).values, truth.values) << parts.name << " " << shape << " " << target;
    }
  }
}

TEST(Transform, GivesTheBitsOfItsDefinition) {
  for (const Shape shape : {Shape::gaussian, Shape::far_mean, Shape::with_zeros, Shape::tiny}) {
    check_all<float>(70, 19, shape);
  }
  check_all<float>(3, 1, Shape::gaussian);
  check_all<float>(1, 40, Shape::gaussian);
  check_all<Half>(20, 33, Shape::gaussian);
  check_all<BFloat16>(20, 33, Shape::gaussian);
  check_all<uint8_t>(20, 33, Shape::gaussian);
  check_all<int8_t>(20, 33, Shape::gaussian);
}

TEST(Transform, OfNoRowsIsNone) {
  for (const TransformParts& parts : some_parts(6)) {
    EXPECT_EQ(applied(TransformChain::from_parts({parts}, cpu_only(1)), Matrix<float>(0, 6)).values.size(), 0u);
  }
}

TEST(Transform, GoesBack) {
  const Matrix<float> rows = make_floats(Shape::gaussian, 50, 12, 1);
  const double scale = squared_distance(rows, Matrix<float>(50, 12));
  for (const TransformSpec& spec : {TransformSpec{TransformKind::random_rotation, 12},
                                    {TransformKind::random_rotation, 30},
                                    {TransformKind::centring},
                                    {TransformKind::pca},
                                    {TransformKind::padding, 20}}) {
    const TransformChain chain = trained({spec}, rows);
    EXPECT_TRUE(chain.reversible());
    EXPECT_LT(squared_distance(rows, reversed(chain, applied(chain, rows))), 1e-11 * scale);
  }
  // An offset too.
  TransformParts parts = trained({{TransformKind::random_rotation, 12}}, rows).parts().front();
  parts.offset = some_values(12, 8);
  const TransformChain step = TransformChain::from_parts({parts}, cpu_only(1));
  EXPECT_LT(squared_distance(rows, reversed(step, applied(step, rows))), 1e-11 * scale);
  // Lengths stay lost.
  const TransformChain unit = trained({{TransformKind::unit_length}}, rows);
  const Matrix<float> scaled = applied(unit, rows);
  EXPECT_EQ(reversed(unit, scaled).values, scaled.values);
}

TEST(Transform, CannotGoBackThroughAnyMatrix) {
  const TransformChain step = TransformChain::from_parts({{Kind::linear, "skew", 2, 2, {1, 1, 0, 1}, {}}}, cpu_only(1));
  EXPECT_FALSE(step.reversible());
  EXPECT_THROW(reversed(step, Matrix<float>(3, 2)), Unsupported);
}

TEST(Transform, RefusesPartsThatDoNotFit) {
  const auto make = [](TransformParts parts) { return TransformChain::from_parts({std::move(parts)}, cpu_only(1)); };
  EXPECT_THROW(make({Kind::linear, "", 2, 2, {1, 2, 3}, {}}), InvalidArgument);
  EXPECT_THROW(make({Kind::linear, "", 2, 2, {1, 2, 3, 4}, {1}}), InvalidArgument);
  EXPECT_THROW(make({Kind::linear, "", 0, 2, {}, {}}), InvalidArgument);
  EXPECT_THROW(make({Kind::shift, "", 2, 3, {}, {1, 2, 3}}), InvalidArgument);
  EXPECT_THROW(make({Kind::shift, "", 2, 2, {}, {}}), InvalidArgument);
  EXPECT_THROW(make({Kind::unit_length, "", 2, 3, {}, {}}), InvalidArgument);
  EXPECT_THROW(make({Kind::padding, "", 3, 2, {}, {}}), InvalidArgument);
  const auto first = make({Kind::padding, "", 2, 3, {}, {}});
  EXPECT_THROW((void)first.then(first.steps().front()), InvalidArgument);
  EXPECT_THROW(applied(first, Matrix<float>(5, 3)), InvalidArgument);
  Matrix<float> narrow(5, 2);
  EXPECT_THROW(first.apply(narrow.view(), MutableMatrixView(narrow.values.data(), 5, 2), cpu_only(1)), InvalidArgument);
}

TEST(TransformChain, IsItsStepsOneAfterTheOtherUnderAnyLimit) {
  const Matrix<float> rows = make_floats(Shape::far_mean, 3000, 24, 1);
  const TransformChain chain = trained({{TransformKind::unit_length},
                                        {TransformKind::pca, 10},
                                        {TransformKind::padding, 14},
                                        {TransformKind::random_rotation, 40}},
                                       rows);
  ASSERT_EQ(chain.steps().size(), 5u);  // PCA is two
  Matrix<float> expected = rows;
  for (const auto& step : chain.steps()) expected = applied(TransformChain({step}), expected);
  EXPECT_EQ(applied(chain, rows).values, expected.values);
  EXPECT_EQ(applied(chain, rows, cpu_only(3, 100'000)).values, expected.values);
  const TransformChain again = TransformChain::from_parts(chain.parts(), cpu_only(1));
  EXPECT_EQ(applied(again, rows).values, expected.values);
  Matrix<float> same(3000, 24);
  TransformChain().apply(rows.view(), MutableMatrixView(same.values.data(), 3000, 24), cpu_only(1));
  EXPECT_EQ(same.values, rows.values);
}

TEST(TransformChain, ReportsAndCanBeCancelled) {
  const Matrix<float> rows = make_floats(Shape::gaussian, 100, 8, 1);
  const TransformChain chain = trained({{TransformKind::pca, 4}}, rows);
  int64_t last = 0;
  (void)applied(chain, rows, cpu_only(1).with_progress([&](const Progress& progress) { last = progress.done; }));
  EXPECT_EQ(last, 100);
  CancelToken token;
  token.request();
  EXPECT_THROW(applied(chain, rows, cpu_only(1).with_cancel(token)), Cancelled);
}

}  // namespace
}  // namespace kith
