#include "cluster/draw/kmeans_plus_plus.hpp"
#include "cluster/steps/kmeans_plan.hpp"
#include "kernels/assign/assign_cpu.hpp"
#include "rows/row_sample.hpp"

#include "cluster/fitted.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

TEST(RowSample, DrawsDistinctRowsEachAsLikely) {
  std::vector<int> drawn(50, 0);
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const auto rows = sample_rows(CounterRng(seed, 1), 50, 10, Resources());
    ASSERT_EQ(rows.size(), 10u);
    ASSERT_TRUE(std::is_sorted(rows.begin(), rows.end()));
    ASSERT_EQ(std::set<uint32_t>(rows.begin(), rows.end()).size(), 10u);
    for (const uint32_t row : rows) ++drawn[row];
  }
  for (const int times : drawn) EXPECT_NEAR(times, 400, 100);  // five standard deviations
  EXPECT_EQ(sample_rows(CounterRng(1, 1), 130, 130, Resources()).size(), 130u);
}

TEST(KMeansPlusPlus, TakesOneRowOfEachFarGroup) {
  auto rows = make_floats(Shape::gaussian, 3000, 5, 1);
  for (int64_t i = 0; i < 3000; ++i) rows.row(i)[0] += static_cast<float>(1000 * (i % 12));
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Resources resources;
    ProgressMeter meter("test", 1, resources);
    const PanelFormat format = centre_format(rows.cols, cpu_extensions());
    ViewSource source(rows.view());
    const auto chosen =
        KMeansPlusPlus(format, {source, 3000}, 12, resources).choose(CounterRng(seed, 2), meter, resources);
    std::set<uint32_t> groups;
    for (const uint32_t row : chosen) groups.insert(row % 12);
    EXPECT_EQ(groups.size(), 12u) << seed;
  }
}

TEST(KMeansPlusPlus, NeverTakesARowWithoutWeight) {
  const auto rows = make_floats(Shape::gaussian, 400, 5, 2);
  std::vector<float> weights(400, 0.0f);
  for (size_t i = 100; i < 200; ++i) weights[i] = 2.0f;
  const Resources resources;
  ProgressMeter meter("test", 1, resources);
  ViewSource source(rows.view());
  const auto chosen = KMeansPlusPlus(PanelFormat::f32, {source, 400, true, weights.data()}, 30, resources)
                          .choose(CounterRng(3, 2), meter, resources);
  for (const uint32_t row : chosen) EXPECT_TRUE(row >= 100 && row < 200) << row;
  EXPECT_EQ(std::set<uint32_t>(chosen.begin(), chosen.end()).size(), 30u);
}

TEST(KMeansStart, NumbersAndWeightsOfASampleAreCounted) {
  KMeansShape shape;
  shape.rows = 1000000;
  shape.cols = 16;
  shape.clusters = 10;
  KMeansRequest request;
  request.sampled_rows = shape.rows;  // all: neither listed nor copied
  const Resources resources = planning_resources(1);
  const int64_t all = start_footprint(shape, request, {}, 1024, resources).host;
  EXPECT_LT(all, 1000000);
  request.sampled_rows = 500000;
  EXPECT_EQ(start_footprint(shape, request, {}, 1024, resources).host - all, 500000 * 8);
}

TEST(GatheredSource, HasTheRowsListedOrAll) {
  const auto rows = make_floats(Shape::gaussian, 90, 3, 6);
  const Resources resources;
  ViewSource source(rows.view());
  const std::vector<uint32_t> none;
  const std::vector<uint32_t> list{4, 7, 8, 60};
  GatheredSource all(source, none, DType::f32, resources);
  GatheredSource some(source, list, DType::f32, resources);
  all.open(40, resources);
  some.open(40, resources);
  EXPECT_EQ(all.rows(), 90);
  EXPECT_EQ(some.rows(), 4);
  const auto value = [](const MatrixView& found, int64_t i) { return reinterpret_cast<const float*>(found.row(i))[2]; };
  EXPECT_EQ(value(all.fetch(50, 40), 39), rows.row(89)[2]);
  EXPECT_EQ(value(some.fetch(1, 3), 2), rows.row(60)[2]);
  float gathered[2][3];
  const uint32_t places[] = {1, 3};
  all.gather(places, 2, {gathered[0], 2, 3}, resources);
  EXPECT_EQ(gathered[1][2], rows.row(3)[2]);
  some.gather(places, 2, {gathered[0], 2, 3}, resources);
  EXPECT_EQ(gathered[1][2], rows.row(60)[2]);
}

// Few groups, far apart: a random start misses some of them, k-means++ none.
TEST(KMeansPlusPlus, StartsBetterThanAtRandom) {
  auto rows = make_floats(Shape::gaussian, 4000, 8, 3);
  for (int64_t i = 0; i < 4000; ++i) {
    for (int64_t c = 0; c < 8; ++c) {
      rows.row(i)[c] += 20 * reference::gaussian(CounterRng(9, 9), static_cast<uint64_t>(i % 40 * 8 + c));
    }
  }
  KMeansParams params;
  params.clusters = 40;
  params.init = KMeansInit::random;
  const double at_random = fit(rows.view(), params).objective;
  params.init = KMeansInit::kmeans_plus_plus;
  EXPECT_LT(fit(rows.view(), params).objective, 0.8 * at_random);
}

TEST(KMeans, MoreStartsAreNeverWorse) {
  const auto rows = make_floats(Shape::gaussian, 800, 4, 4);
  KMeansParams params;
  params.clusters = 25;
  params.init = KMeansInit::random;
  const double one = fit(rows.view(), params).objective;
  params.n_init = 6;
  EXPECT_LT(fit(rows.view(), params).objective, one);
}

TEST(KMeans, AnotherSeedGivesOtherCentres) {
  const auto rows = make_floats(Shape::gaussian, 800, 4, 5);
  KMeansParams params;
  params.clusters = 25;
  const Fitted first = fit(rows.view(), params);
  EXPECT_EQ(fit(rows.view(), params), first);
  params.seed = 1;
  EXPECT_NE(fit(rows.view(), params).centres, first.centres);
}

}  // namespace
}  // namespace kith
