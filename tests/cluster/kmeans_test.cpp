#include <kith/kmeans.hpp>

#include "cluster/fitted.hpp"
#include "core/half.hpp"
#include "io/temporary_directory.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"
#include "reference/lloyd.hpp"
#include "reference/sanitized.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

// Centres taken from the rows, so that both sides begin alike.
template <typename T>
reference::Matrix<float> some_rows(const reference::Matrix<T>& rows, int64_t count) {
  reference::Matrix<float> centres(count, rows.cols);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < rows.cols; ++c) {
      centres.row(i)[c] = static_cast<float>(rows.row(i * rows.rows / count)[c]);
    }
  }
  return centres;
}

KMeansParams lloyd_from_given(int64_t clusters, int64_t iterations) {
  KMeansParams params;
  params.clusters = clusters;
  params.iterations = iterations;
  params.tol = 0;
  params.init = KMeansInit::given;
  return params;
}

template <typename T>
void expect_equals_reference(const reference::Matrix<T>& rows, const reference::Matrix<float>& first,
                             const std::vector<float>& weights, bool spherical, int iterations) {
  KMeansParams params = lloyd_from_given(first.rows, iterations);
  params.spherical = spherical;
  KMeansInput input;
  input.centres = first.view();
  if (!weights.empty()) input.weights = {weights.data(), rows.rows, {}};
  const Fitted found = fit(rows.view(), params, input);
  // A fit that has settled stops; the reference goes on without changing anything.
  const auto truth = reference::lloyd(rows, first, weights, spherical, static_cast<int>(found.iterations));
  EXPECT_EQ(found.centres, truth.centres.values);
  EXPECT_EQ(found.labels, truth.labels);
  EXPECT_EQ(found.history, truth.history);
  if (found.iterations < iterations) {
    EXPECT_EQ(reference::lloyd(rows, first, weights, spherical, iterations).centres.values, found.centres);
  }
}

void scale(reference::Matrix<float>& rows, int exponent) {
  for (float& value : rows.values) value = std::ldexp(value, exponent);
}

class KMeansOnShapes : public ::testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(All, KMeansOnShapes, ::testing::ValuesIn(reference::kAllShapes));

TEST_P(KMeansOnShapes, EqualsTheReference) {
  for (const auto& [rows, cols, clusters] :
       {std::tuple<int64_t, int64_t, int64_t>{1500, 20, 30}, {70, 1, 5}, {65, 3, 65}}) {
    SCOPED_TRACE(rows);
    auto data = make_floats(GetParam(), rows, cols, 1);
    // The reference takes squares in f32, which these shapes leave; ScalesExtremeData is about them.
    if (GetParam() == Shape::huge) scale(data, -60);
    if (GetParam() == Shape::tiny) scale(data, 60);
    expect_equals_reference(data, some_rows(data, clusters), {}, false, 4);
  }
}

TEST_P(KMeansOnShapes, SphericalEqualsTheReference) {
  const auto data = make_floats(GetParam(), 1100, 18, 2);
  expect_equals_reference(data, some_rows(data, 25), {}, true, 3);
}

// Rows times a power of two have the same labels, and centres and objectives scaled alike, however large or small.
TEST(KMeans, ScalesExtremeData) {
  const testing::TemporaryDirectory directory;
  for (const int64_t batch : {0, 100}) {
    const auto plain = make_floats(Shape::gaussian, 2000, 12, 31);
    KMeansParams params;
    params.clusters = 9;
    params.batch_size = batch;
    params.iterations = 6;
    const Fitted expected = fit(plain.view(), params);
    for (const int exponent : {83, 110, -79, -110}) {
      SCOPED_TRACE(exponent);
      auto rows = plain;
      scale(rows, exponent);
      KMeans model(params);
      model.fit(rows.view(), {}, cpu_resources(2));
      Fitted found = taken(model);
      EXPECT_EQ(found.labels, expected.labels);
      std::vector<int32_t> labels(2000);
      std::vector<float> distances(2000);
      model.predict(rows.view(), labels.data(), distances.data(), cpu_resources(2));
      EXPECT_EQ(labels, expected.labels);
      std::vector<int32_t> labels_alone(2000);
      model.predict(rows.view(), labels_alone.data(), nullptr, cpu_resources(2));
      EXPECT_EQ(labels_alone, expected.labels);
      EXPECT_TRUE(std::all_of(distances.begin(), distances.end(),
                              [](float distance) { return distance > 0 && std::isfinite(distance); }));
      write_vectors(directory.path("x.fbin"), rows.view());
      EXPECT_EQ(fit(VectorFile(directory.path("x.fbin")), params), found);
      for (float& value : found.centres) value = std::ldexp(value, -exponent);
      for (double& objective : found.history) objective = std::ldexp(objective, -2 * exponent);
      found.objective = std::ldexp(found.objective, -2 * exponent);
      EXPECT_EQ(found, expected);

      KMeans stream(params);
      KMeans plain_stream(params);
      for (int64_t first = 0; first < 2000; first += 500) {
        stream.partial_fit(rows.view().slice(first, 500), {}, cpu_resources(2));
        plain_stream.partial_fit(plain.view().slice(first, 500), {}, cpu_resources(2));
      }
      EXPECT_EQ(taken(stream).labels, taken(plain_stream).labels);
      EXPECT_EQ(std::ldexp(stream.objective(), -2 * exponent), plain_stream.objective());
    }
  }
}

// The tolerance of directions is relative to that of directions.
TEST(KMeans, SphericalStopsWhereItStopsForRowsOfAnyLength) {
  const auto rows = make_floats(Shape::gaussian, 3000, 10, 41);
  KMeansParams params;
  params.clusters = 12;
  params.iterations = 200;
  params.spherical = true;
  const Fitted expected = fit(rows.view(), params);
  EXPECT_GT(expected.iterations, 5);
  for (const int exponent : {10, -10}) {
    auto other = rows;
    scale(other, exponent);
    const Fitted found = fit(other.view(), params);
    EXPECT_EQ(found.iterations, expected.iterations);
    EXPECT_EQ(found.centres, expected.centres);
    EXPECT_EQ(found.labels, expected.labels);
  }
}

TEST(KMeans, ZeroVectorsMakeNoCentresOfDirections) {
  auto rows = make_floats(Shape::gaussian, 40, 5, 3);
  for (int64_t i = 0; i < 40; i += 2) std::fill_n(rows.row(i), 5, 0.0f);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    KMeansParams params;
    params.clusters = 4;
    params.spherical = true;
    params.seed = seed;
    KMeans model(params);
    model.fit(rows.view());
    const KMeansSnapshot fitted = model.snapshot();
    for (int64_t c = 0; c < 4; ++c) {
      const auto* centre = reinterpret_cast<const float*>(fitted.centres.row(c));
      EXPECT_NEAR(canonical_squared_norm(centre, 5), 1.0, 1e-5) << seed;
    }
  }
}

TEST(KMeans, CountsBelongToTheLabels) {
  const auto rows = make_floats(Shape::gaussian, 3000, 5, 1);
  KMeansParams params;
  params.clusters = 20;
  params.iterations = 3;  // not settled
  KMeans model(params);
  model.fit(rows.view());
  std::vector<double> counts(20, 0.0);
  for (const int32_t label : taken(model).labels) counts[static_cast<size_t>(label)] += 1;
  EXPECT_EQ(taken(model).counts, counts);
}

TEST(KMeans, EqualsTheReferenceWithEveryInstructionSet) {
  const auto floats = make_floats(Shape::gaussian, 2100, 64, 3);
  const auto bytes = make_bytes(2100, 33, 4);
  const auto few_values = make_bytes(600, 16, 5, 2);  // many rows are equally near to several centres
  for (const std::string& target : cpu_targets()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    expect_equals_reference(floats, some_rows(floats, 50), {}, false, 3);
    expect_equals_reference(bytes, some_rows(bytes, 49), {}, false, 3);
    expect_equals_reference(few_values, some_rows(few_values, 40), {}, false, 3);
  }
}

TEST(KMeans, EqualsTheReferenceOfLongRowsWithEveryInstructionSet) {
  for (const Shape shape : {Shape::gaussian, Shape::far_mean, Shape::mixed_norms, Shape::all_equal}) {
    const auto rows = make_floats(shape, 130, 133, 19);
    const auto first = some_rows(rows, 37);
    for (const std::string& target : cpu_targets()) {
      SCOPED_TRACE(target);
      const ForcedTarget forced(target);
      expect_equals_reference(rows, first, {}, false, 3);
      expect_equals_reference(rows, first, {}, true, 3);
    }
  }
}

// Packed bytes leave many centres for each, so that later passes are done by a table.
TEST(KMeans, EqualsTheReferenceOfRowsWithoutClusters) {
  const auto rows = make_floats(Shape::gaussian, 600, 300, 21);
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    expect_equals_reference(rows, some_rows(rows, 60), {}, false, 4);
  }
}

TEST(KMeans, WeightsCountRowsSoManyTimes) {
  const auto data = make_floats(Shape::gaussian, 1300, 17, 6);
  std::vector<float> weights;
  for (int i = 0; i < 1300; ++i) weights.push_back(static_cast<float>(i % 4));
  expect_equals_reference(data, some_rows(data, 20), weights, false, 4);

  const std::vector<float> ones(1300, 1.0f);
  KMeansInput weighted;
  weighted.weights = {ones.data(), 1300, {}};
  KMeansParams params;
  params.clusters = 20;
  EXPECT_EQ(fit(data.view(), params), fit(data.view(), params, weighted));
}

TEST(KMeans, EveryDtypeIsClusteredAsTheFloatsItStandsFor) {
  const auto bytes = make_bytes(900, 24, 21, 100);
  reference::Matrix<float> floats(900, 24);
  std::vector<uint16_t> halves, brains;
  std::vector<int8_t> small;
  for (size_t i = 0; i < bytes.values.size(); ++i) {
    floats.values[i] = static_cast<float>(bytes.values[i]);
    halves.push_back(half_of(floats.values[i]).bits);
    brains.push_back(bfloat16_of(floats.values[i]).bits);
    small.push_back(static_cast<int8_t>(bytes.values[i]));
  }
  KMeansParams params;
  params.clusters = 13;
  const Fitted truth = fit(floats.view(), params);
  const MatrixShape shape{900, 24, 24};
  EXPECT_EQ(fit(bytes.view(), params), truth);
  EXPECT_EQ(fit(MatrixView(halves.data(), DType::f16, shape), params), truth);
  EXPECT_EQ(fit(MatrixView(brains.data(), DType::bf16, shape), params), truth);
  EXPECT_EQ(fit(MatrixView(small.data(), DType::i8, shape), params), truth);
}

// Whatever runs it, the bytes are the same.
TEST(KMeans, TheSameBytesForAnyThreadsAndInstructionSet) {
  const auto data = make_floats(Shape::mixed_norms, reference::fewer_if_sanitized(5000, 1300), 40, 7);
  for (const KMeansInit init : {KMeansInit::random, KMeansInit::kmeans_plus_plus}) {
    for (const int64_t batch : {0, 300}) {
      KMeansParams params;
      params.clusters = 60;
      params.iterations = 5;
      params.init = init;
      params.batch_size = batch;
      params.n_init = 2;
      params.seed = 11;
      const Fitted one = fit(data.view(), params, {}, cpu_resources(1));
      EXPECT_EQ(fit(data.view(), params, {}, cpu_resources(2)), one);
      EXPECT_EQ(fit(data.view(), params, {}, cpu_resources(5)), one);
      for (const std::string& target : cpu_targets()) {
        const ForcedTarget forced(target);
        EXPECT_EQ(fit(data.view(), params), one) << target;
      }
    }
  }
}

TEST(KMeans, AnEmptyClusterGetsTheFarthestRow) {
  reference::Matrix<float> rows(7, 1);
  rows.values = {0, 1, 2, 3, 100, 101, 60};
  reference::Matrix<float> first(3, 1);
  first.values = {1, 100, 1};  // the third is a double of the first: no row is nearest to it
  KMeansParams params = lloyd_from_given(3, 20);
  KMeansInput input;
  input.centres = first.view();
  const Fitted found = fit(rows.view(), params, input);
  EXPECT_EQ(found.labels, (std::vector<int32_t>{0, 0, 0, 0, 1, 1, 2}));
  EXPECT_EQ(found.centres, (std::vector<float>{1.5f, 100.5f, 60.0f}));
  expect_equals_reference(rows, first, {}, false, 20);
}

// Equal rows are equally far: centres that took two of them would lie on the same place, and one would be empty again.
TEST(KMeans, NoCentreIsEmptyWhereEnoughRowsDiffer) {
  const auto distinct = make_floats(Shape::gaussian, 60, 5, 3);
  reference::Matrix<float> rows(1200, 5);
  for (int64_t i = 0; i < rows.rows; ++i) {
    for (int64_t col = 0; col < rows.cols; ++col) rows.row(i)[col] = distinct.row(i * i % 60)[col];
  }
  std::set<std::vector<float>> different;
  for (int64_t i = 0; i < rows.rows; ++i) different.insert({rows.row(i), rows.row(i) + rows.cols});
  KMeansParams params;
  params.clusters = static_cast<int64_t>(different.size()) / 2;
  params.init = KMeansInit::random;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    params.seed = seed;
    const Fitted found = fit(rows.view(), params);
    EXPECT_EQ(std::set<int32_t>(found.labels.begin(), found.labels.end()).size(), static_cast<size_t>(params.clusters));
  }
}

TEST(KMeans, WithoutAHistoryAllElseIsTheSame) {
  const auto expect_same = [](const reference::Matrix<float>& rows, KMeansParams params, const KMeansInput& input) {
    Fitted with = fit(rows.view(), params, input);
    EXPECT_EQ(static_cast<int64_t>(with.history.size()), with.iterations);
    params.history = false;
    const Fitted without = fit(rows.view(), params, input);
    EXPECT_TRUE(without.history.empty());
    with.history.clear();
    EXPECT_EQ(without, with) << params.clusters << " centres";
  };
  int64_t number = 0;
  for (const Shape shape : {Shape::gaussian, Shape::mixed_norms, Shape::all_equal}) {
    const auto rows = make_floats(shape, 1300, 12, 21);
    const std::vector<float> weights(1300, 0.5f);
    for (const int64_t clusters : {1, 20, 520}) {  // the last are packed
      if (reference::left_to_plain(number++, 4)) continue;
      KMeansParams params;
      params.clusters = clusters;
      params.iterations = 3;
      params.n_init = 2;
      params.init = KMeansInit::random;
      params.tol = 0;
      expect_same(rows, params, {});
      expect_same(rows, params, {{weights.data(), 1300, {}}, {}});
      params.spherical = true;
      expect_same(rows, params, {});
      params.compute_labels = false;
      expect_same(rows, params, {});
      params.batch_size = 100;
      expect_same(rows, params, {});
    }
  }
  for (const bool spherical : {false, true}) {  // until nothing moves: the last labels are scored by themselves
    const auto rows = make_floats(Shape::gaussian, 700, 150, 22);
    const std::vector<float> weights(700, 0.5f);
    KMeansParams params;
    params.clusters = 60;
    params.iterations = 100;
    params.init = KMeansInit::random;
    params.tol = 0;
    params.spherical = spherical;
    EXPECT_LT(fit(rows.view(), params, {}).iterations, 100);
    expect_same(rows, params, {});
    expect_same(rows, params, {{weights.data(), 700, {}}, {}});
  }
  reference::Matrix<float> rows(7, 1);
  rows.values = {0, 1, 2, 3, 100, 101, 60};
  reference::Matrix<float> first(3, 1);
  first.values = {1, 100, 1};  // an empty cluster, which asks for the farthest row
  KMeansInput input;
  input.centres = first.view();
  expect_same(rows, lloyd_from_given(3, 20), input);
}

TEST(KMeans, OneCentreIsTheMean) {
  reference::Matrix<float> rows(3, 2);
  rows.values = {0, 0, 3, 6, 6, 3};
  KMeansParams params;
  params.clusters = 1;
  const Fitted found = fit(rows.view(), params);
  EXPECT_EQ(found.centres, (std::vector<float>{3, 3}));
  EXPECT_EQ(found.objective, 18 + 9 + 9);
  EXPECT_EQ(found.counts, (std::vector<double>{3}));
}

TEST(KMeans, AsManyCentresAsRowsLeaveNothing) {
  const auto rows = make_floats(Shape::gaussian, 40, 8, 8);
  for (const KMeansInit init : {KMeansInit::random, KMeansInit::kmeans_plus_plus}) {
    KMeansParams params;
    params.clusters = 40;
    params.init = init;
    EXPECT_EQ(fit(rows.view(), params).objective, 0);
  }
}

TEST(KMeans, RowsThatAreAllEqual) {
  const auto rows = make_floats(Shape::all_equal, 50, 6, 9);
  for (const KMeansInit init : {KMeansInit::random, KMeansInit::kmeans_plus_plus}) {
    KMeansParams params;
    params.clusters = 7;
    params.init = init;
    const Fitted found = fit(rows.view(), params);
    EXPECT_EQ(found.objective, 0);
    EXPECT_EQ(found.labels, std::vector<int32_t>(50, 0));
    EXPECT_LE(found.iterations, 2);
  }
}

TEST(KMeans, StopsWhereTheToleranceSays) {
  const auto rows = make_floats(Shape::gaussian, 3000, 8, 10);
  KMeansParams params;
  params.clusters = 20;
  params.iterations = 300;
  params.tol = 0;
  const Fitted to_the_end = fit(rows.view(), params);
  EXPECT_LT(to_the_end.iterations, 300);
  params.tol = 1e-2;
  const Fitted early = fit(rows.view(), params);
  EXPECT_LT(early.iterations, to_the_end.iterations);
  EXPECT_GT(early.iterations, 1);
  params.tol = 1e9;
  EXPECT_EQ(fit(rows.view(), params).iterations, 1);
}

TEST(KMeans, ASampleTrainsAndAllRowsAreLabelled) {
  const auto rows = make_floats(Shape::gaussian, 4000, 12, 11);
  KMeansParams params;
  params.clusters = 10;
  params.max_points_per_centre = 50;
  KMeans model(params);
  model.fit(rows.view(), {}, cpu_resources(2));
  const KMeansSnapshot fitted = model.snapshot();
  ASSERT_EQ(fitted.labels.size, 4000);
  std::vector<int32_t> labels(4000);
  std::vector<float> distances(4000);
  model.predict(rows.view(), labels.data(), distances.data(), cpu_resources(2));
  EXPECT_EQ(taken(model).labels, labels);
  double sum = 0;
  for (const float distance : distances) sum += static_cast<double>(distance) * static_cast<double>(distance);
  EXPECT_NEAR(model.objective() / sum, 1, 1e-5);
  double counted = 0;
  for (int64_t c = 0; c < 10; ++c) counted += fitted.counts[c];
  EXPECT_EQ(counted, 500);
}

TEST(KMeans, ManyCentresAreComparedAsFewAre) {  // packed, where few are not
  for (const int64_t cols : {10, 24}) {
    const auto rows = make_floats(Shape::gaussian, 2000, cols, 13);
    KMeansParams params;
    params.clusters = 600;
    params.init = KMeansInit::random;
    params.iterations = 2;
    KMeans model(params);
    model.fit(rows.view(), {}, cpu_resources(2));
    std::vector<int32_t> labels(2000);
    std::vector<int32_t> labels_alone(2000);
    std::vector<float> nearest(2000);
    model.predict(rows.view(), labels.data(), nearest.data(), cpu_resources(2));
    model.predict(rows.view(), labels_alone.data(), nullptr, cpu_resources(2));
    EXPECT_EQ(taken(model).labels, labels);
    EXPECT_EQ(labels_alone, labels);
    reference::Matrix<float> all(2000, 600);
    model.transform(rows.view(), {all.values.data(), 2000, 600}, cpu_resources(2));
    for (int64_t i = 0; i < 2000; ++i) {
      const float best = *std::min_element(all.row(i), all.row(i) + 600);
      ASSERT_EQ(all.row(i)[labels[static_cast<size_t>(i)]], best);
    }
  }
}

TEST(KMeans, PredictAndTransformAgree) {
  const auto rows = make_floats(Shape::gaussian, 300, 24, 12);
  for (const bool spherical : {false, true}) {
    KMeansParams params;
    params.clusters = 15;
    params.spherical = spherical;
    KMeans model(params);
    model.fit(rows.view(), {}, cpu_resources(2));
    std::vector<int32_t> labels(300);
    std::vector<float> nearest(300);
    model.predict(rows.view(), labels.data(), nearest.data(), cpu_resources(2));
    EXPECT_EQ(taken(model).labels, labels);
    reference::Matrix<float> all(300, 15);
    model.transform(rows.view(), {all.values.data(), 300, 15}, cpu_resources(2));
    for (int64_t i = 0; i < 300; ++i) {
      const float* row = all.row(i);
      const float best = spherical ? *std::max_element(row, row + 15) : *std::min_element(row, row + 15);
      EXPECT_EQ(row[labels[static_cast<size_t>(i)]], best);
      EXPECT_FLOAT_EQ(nearest[static_cast<size_t>(i)], best);
    }
    if (!spherical) continue;
    const KMeansSnapshot fitted = model.snapshot();
    for (int64_t c = 0; c < 15; ++c) {
      const auto* centre = static_cast<const float*>(fitted.centres.data()) + c * 24;
      EXPECT_NEAR(canonical_squared_norm(centre, 24), 1, 1e-6);
    }
  }
}

RC_GTEST_PROP(KMeansProperty, TheObjectiveNeverRises, ()) {
  const auto shape = *rc::gen::elementOf(std::vector<Shape>{Shape::gaussian, Shape::far_mean, Shape::near_duplicates,
                                                            Shape::with_zeros, Shape::mixed_norms, Shape::sorted});
  const auto rows = make_floats(shape, *rc::gen::inRange<int64_t>(20, 600), *rc::gen::inRange<int64_t>(1, 40),
                                *rc::gen::arbitrary<uint32_t>());
  KMeansParams params;
  params.clusters = *rc::gen::inRange<int64_t>(1, 20);
  params.spherical = *rc::gen::arbitrary<bool>();
  params.init = *rc::gen::element(KMeansInit::random, KMeansInit::kmeans_plus_plus);
  params.tol = 0;
  params.seed = *rc::gen::arbitrary<uint32_t>();
  const Fitted found = fit(rows.view(), params);
  double largest = 0;
  for (const double objective : found.history) largest = std::max(largest, std::abs(objective));
  for (size_t i = 1; i < found.history.size(); ++i) {
    // Centres are rounded to f32: for rows far from the origin that alone moves them by a share of their length.
    double slack = 1e-6 * largest;
    for (const float value : rows.values) slack += 1e-12 * static_cast<double>(value) * static_cast<double>(value);
    RC_ASSERT(found.history[i] <= found.history[i - 1] + slack);
  }
  RC_ASSERT(found.objective <= found.history.back() + 1e-6 * largest);
  double counted = 0;
  for (const double count : found.counts) counted += count;
  RC_ASSERT(counted == static_cast<double>(rows.rows));
}

}  // namespace
}  // namespace kith
