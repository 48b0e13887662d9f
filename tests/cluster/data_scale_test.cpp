// Data whose squared distances leave f32: what is compared decides on the scale, and nothing is lost by it.
#include "cluster/data/data_scale.hpp"

#include "cluster/fitted.hpp"
#include "core/half.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

reference::Matrix<float> matrix(int64_t cols, std::vector<float> values) {
  reference::Matrix<float> made(static_cast<int64_t>(values.size()) / cols, cols);
  made.values = std::move(values);
  return made;
}

void times(reference::Matrix<float>& rows, int exponent) {
  for (float& value : rows.values) value = std::ldexp(value, exponent);
}

KMeans model_of(const reference::Matrix<float>& centres) {
  KMeansParams params;
  params.clusters = centres.rows;
  KMeans model(params);
  model.set_centres(centres.view());
  return model;
}

std::vector<int32_t> labels_of(const KMeans& model, const reference::Matrix<float>& rows) {
  std::vector<int32_t> labels(static_cast<size_t>(rows.rows));
  model.predict(rows.view(), labels.data(), nullptr, cpu_resources(2));
  return labels;
}

KMeansParams from_given(int64_t clusters) {
  KMeansParams params;
  params.clusters = clusters;
  params.iterations = 1;
  params.init = KMeansInit::given;
  return params;
}

// One row, or equal ones, have no scale of their own.
TEST(DataScale, RowsThatComeOneByOneHaveThatOfTheCentres) {
  const auto plain = make_floats(Shape::gaussian, 40, 5, 1);
  for (const int exponent : {83, -79}) {
    auto rows = plain;
    times(rows, exponent);
    KMeansParams params;
    params.clusters = 4;
    KMeans stream(params);
    KMeans expected(params);
    stream.partial_fit(rows.view().slice(0, 8), {}, cpu_resources(1));
    expected.partial_fit(plain.view().slice(0, 8), {}, cpu_resources(1));
    for (int64_t i = 8; i < 40; ++i) {
      SCOPED_TRACE(i);
      stream.partial_fit(rows.view().slice(i, 1), {}, cpu_resources(1));
      expected.partial_fit(plain.view().slice(i, 1), {}, cpu_resources(1));
      Fitted found = taken(stream);
      for (float& value : found.centres) value = std::ldexp(value, -exponent);
      EXPECT_EQ(found.centres, taken(expected).centres);
      EXPECT_EQ(found.labels, taken(expected).labels);
      EXPECT_EQ(std::ldexp(stream.objective(), -2 * exponent), expected.objective());
    }
  }
}

TEST(DataScale, ATinyBatchGoesToTheNearestOfOrdinaryCentres) {
  const auto centres = matrix(2, {1, 1, 0.25f, 0.25f, -1, -1});
  KMeans model = model_of(centres);
  const auto rows = matrix(2, {1e-20f, 0, 0, 3e-20f});
  model.partial_fit(rows.view(), {}, cpu_resources(1));
  EXPECT_EQ(taken(model).labels, (std::vector<int32_t>{1, 1}));
  EXPECT_EQ(taken(model).centres, (std::vector<float>{1, 1, 0.5e-20f, 1.5e-20f, -1, -1}));
  EXPECT_EQ(model.objective(), 0.25);
}

TEST(DataScale, ACentreThatNoRowComesToStays) {
  KMeans model = model_of(matrix(2, {1e-30f, 3e-30f, 0.9e25f, 0}));
  const auto rows = matrix(2, {1e25f, 1e24f});
  model.partial_fit(rows.view(), {}, cpu_resources(1));
  EXPECT_EQ(taken(model).centres, (std::vector<float>{1e-30f, 3e-30f, 1e25f, 1e24f}));
}

TEST(DataScale, CentresToBeginWithCountWhateverTheirType) {
  const std::vector<float> values{1, 1, 0.25f, 0.25f, -1, -1};
  std::vector<uint16_t> brains;
  for (const float value : values) brains.push_back(bfloat16_of(value).bits);
  const auto centres = matrix(2, values);
  auto rows = make_floats(Shape::gaussian, 300, 2, 2);
  times(rows, -70);
  KMeansInput input;
  for (const MatrixView& given : {centres.view(), MatrixView(brains.data(), DType::bf16, {3, 2, 2})}) {
    input.centres = given;
    EXPECT_EQ(fit(rows.view(), from_given(3), input).history.front(), 300 * 0.125);
    KMeans stream(from_given(3));
    stream.partial_fit(rows.view(), input, cpu_resources(1));
    EXPECT_EQ(taken(stream).labels, std::vector<int32_t>(300, 1));
  }
  const auto equal = matrix(1, std::vector<float>(20, 0x1p83f));
  const auto around = matrix(1, {-0x1p83f, 0x1.8p83f});
  input.centres = around.view();
  EXPECT_EQ(fit(equal.view(), from_given(2), input).history.front(), 20 * 0x1p164);
}

TEST(DataScale, AFarCentreTakesNoDigitsFromNearOnes) {
  auto centres = make_floats(Shape::gaussian, 6, 4, 3);
  const auto rows = make_floats(Shape::gaussian, 500, 4, 4);
  const std::vector<int32_t> expected = labels_of(model_of(centres), rows);
  centres.rows = 7;
  centres.values.insert(centres.values.end(), {1e30f, 3e38f, 0, -3e38f});
  EXPECT_EQ(labels_of(model_of(centres), rows), expected);
  auto tiny_rows = rows;
  times(tiny_rows, -100);
  centres.values.resize(24);
  centres.rows = 6;
  times(centres, -100);
  centres.rows = 7;
  centres.values.insert(centres.values.end(), {1, 0, 0, 1e9f});
  EXPECT_EQ(labels_of(model_of(centres), tiny_rows), expected);
}

// Most rows are tiny; one that the sample misses is not, and none becomes infinite.
TEST(DataScale, ALargeRowAmongTinyOnesStaysWhatItIs) {
  auto rows = make_floats(Shape::gaussian, 600, 2, 5);
  times(rows, -100);
  rows.row(1)[0] = 1e9f;
  rows.row(1)[1] = 3;
  const auto centres = matrix(2, {0x1p-100f, 0, -0x1p-100f, 0, 1e9f, 3});
  KMeansInput input;
  input.centres = centres.view();
  const Fitted found = fit(rows.view(), from_given(3), input);
  EXPECT_EQ(found.labels[1], 2);
  EXPECT_EQ(found.counts[2], 1);
  EXPECT_GT(found.counts[0], 100);
  EXPECT_GT(found.counts[1], 100);
  EXPECT_EQ(found.centres[4], 1e9f);
  EXPECT_EQ(found.centres[5], 3);
  const std::vector<int32_t> labels = labels_of(model_of(centres), rows);
  EXPECT_EQ(labels[1], 2);
  EXPECT_EQ(std::count(labels.begin(), labels.end(), 2), 1);

  KMeansParams params;
  params.clusters = 5;
  KMeans stream(params);
  EXPECT_NO_THROW(stream.partial_fit(rows.view(), {}, cpu_resources(1)));
}

TEST(DataScale, ALargeColumnThatIsConstantIsKept) {
  auto rows = make_floats(Shape::gaussian, 400, 2, 6);
  times(rows, -100);
  for (int64_t i = 0; i < 400; ++i) rows.row(i)[0] = 1e9f;
  KMeansParams params;
  params.clusters = 3;
  const Fitted found = fit(rows.view(), params);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(found.centres[2 * c], 1e9f);
    EXPECT_LT(std::fabs(found.centres[2 * c + 1]), 0x1p-97f);
  }
  EXPECT_GT(found.objective, 0);
}

TEST(DataScale, ValuesStayFiniteOrWhatTheyWere) {
  auto rows = matrix(5, {1e30f, -1e30f, INFINITY, NAN, 3});
  scale_values({rows.values.data(), 1, 5}, 100);
  EXPECT_EQ(rows.values[0], std::numeric_limits<float>::max());
  EXPECT_EQ(rows.values[1], std::numeric_limits<float>::lowest());
  EXPECT_EQ(rows.values[2], INFINITY);
  EXPECT_TRUE(std::isnan(rows.values[3]));
  EXPECT_EQ(rows.values[4], 3 * 0x1p100f);
}

}  // namespace
}  // namespace kith
