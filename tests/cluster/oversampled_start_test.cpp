// Which start is chosen, and the start for many centres, whose candidates are drawn in rounds.
#include "cluster/start/first_centres.hpp"

#include "cluster/fitted.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

KMeansParams oversampled_with(int64_t clusters) {
  KMeansParams params;
  params.clusters = clusters;
  return params;
}

TEST(StartChoice, LooksAtAllRowsWhereThatIsCheap) {
  EXPECT_EQ(choose_start(oversampled_with(8), 20350, 4).plus_plus_rows, 20350);
  EXPECT_EQ(choose_start(oversampled_with(8), 1000000, 8).plus_plus_rows, 1000000);
  EXPECT_EQ(choose_start(oversampled_with(100), 60000, 64).plus_plus_rows, 60000);
  const StartChoice huge =
      choose_start(oversampled_with(8), 100000000, 128);  // few centres of many rows: a large sample
  EXPECT_FALSE(huge.oversamples());
  EXPECT_GT(huge.plus_plus_rows, 500000);
  EXPECT_LT(huge.plus_plus_rows, 2000000);
}

TEST(StartChoice, ManyCentresAreOversampled) {
  const StartChoice many = choose_start(oversampled_with(4096), 1000000, 128);
  EXPECT_EQ(many.candidates, 4 * 4096);
  EXPECT_EQ(many.plus_plus_rows, 0);
  EXPECT_EQ(choose_start(oversampled_with(100000), 150000, 128).candidates, 150000);  // all rows are candidates
}

TEST(StartChoice, AParameterSaysOtherwise) {
  KMeansParams params = oversampled_with(4096);
  params.init_points_per_centre = 32;
  EXPECT_EQ(choose_start(params, 1000000, 128).plus_plus_rows, 32 * 4096);
  params.init_points_per_centre = 0;
  EXPECT_EQ(choose_start(params, 1000000, 128).plus_plus_rows, 1000000);
  params.init_points_per_centre = kAutomaticInitPoints;
  params.batch_size = 1000;
  EXPECT_EQ(choose_start(params, 1000000, 128).plus_plus_rows, 32 * 4096);
  params.init = KMeansInit::random;
  EXPECT_EQ(choose_start(params, 1000000, 128).plus_plus_rows, 0);
}

// One cluster of many rows and seven of few: whoever looks at few rows misses some.
TEST(KMeansStart, FindsSmallClusters) {
  constexpr int64_t kRows = 20350;
  auto rows = make_floats(Shape::gaussian, kRows, 4, 1);
  const auto middles = make_floats(Shape::gaussian, 8, 4, 2);
  double least = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t c = 0; c < 4; ++c) {
      least += std::pow(static_cast<double>(rows.row(i)[c]), 2);
      rows.row(i)[c] += 200 * middles.row(i < 20000 ? 0 : 1 + i % 7)[c];
    }
  }
  for (uint64_t seed = 0; seed < 6; ++seed) {
    KMeansParams params = oversampled_with(8);
    params.seed = seed;
    EXPECT_LT(fit(rows.view(), params).objective, 1.02 * least) << seed;
  }
}

// Enough values and centres that candidates are drawn.
TEST(KMeansStart, OversamplesTheSameFromAFileUnderALimitByAnyThreads) {
  constexpr int64_t kRows = 6000;
  constexpr int64_t kCols = 256;
  KMeansParams params = oversampled_with(700);
  params.iterations = 1;
  ASSERT_TRUE(choose_start(params, kRows, kCols).oversamples());
  const auto rows = make_floats(Shape::gaussian, kRows, kCols, 3);
  const Fitted truth = fit(rows.view(), params, {}, cpu_resources(1));
  const testing::TemporaryDirectory directory;
  write_vectors(directory.path("x.fbin"), rows.view());
  const VectorFile file(directory.path("x.fbin"));
  EXPECT_EQ(fit(file, params, {}, cpu_resources(2, int64_t{24} << 20)), truth);
}

TEST(KMeansStart, OversamplingFindsTheGroupsAndHeedsWeights) {
  constexpr int64_t kRows = 3000;
  constexpr int64_t kGroups = 60;
  constexpr int64_t kCols = 6;
  auto rows = make_floats(Shape::gaussian, kRows, kCols, 5);
  const auto middles = make_floats(Shape::gaussian, kGroups, kCols, 6);
  std::vector<float> weights(kRows, 1.0f);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t c = 0; c < kCols; ++c) rows.row(i)[c] += 50 * middles.row(i % kGroups)[c];
    if (i % kGroups == 7) weights[static_cast<size_t>(i)] = 0;  // this group counts for nothing
  }
  const Resources resources = cpu_resources(2);
  ProgressMeter meter("test", 1, resources);
  const KMeansShape shape({kRows, kCols, DType::f32}, kGroups);
  const KMeansRequest request;
  const KMeansPlan plan = plan_kmeans_cpu(shape, request, {kNoLimit, 0, 2});
  ViewSource source(rows.view());
  const auto backend = make_kmeans_cpu(shape, request, plan, sample_data(source, kCols, resources), resources);
  std::vector<int32_t> labels(kRows);
  std::vector<float> keys(kRows);
  const OversampledInput input{source,          *backend, {kRows, labels.data(), keys.data(), weights.data()},
                               plan.piece_rows, kGroups,  4 * kGroups};
  std::vector<bool> groups(kGroups, false);
  const Candidates all = draw_candidates(input, CounterRng(1, 2), meter, resources);
  EXPECT_LE(all.count, 4 * kGroups);
  EXPECT_GT(all.count, 3 * kGroups);
  double total = 0;
  for (const float weight : all.weights) total += static_cast<double>(weight);
  EXPECT_EQ(total, kRows - kRows / kGroups);  // every row's weight is some candidate's
  for (int64_t i = 0; i < all.count; ++i) {
    const auto* const row = reinterpret_cast<const float*>(all.rows().row(i));
    for (int64_t g = 0; g < kRows; ++g) {
      if (std::equal(row, row + kCols, rows.row(g))) groups[static_cast<size_t>(g % kGroups)] = true;
    }
  }
  EXPECT_EQ(std::count(groups.begin(), groups.end(), true), kGroups - 1);
  EXPECT_FALSE(groups[7]);
}

TEST(KMeansStart, FewRowsThatDifferAndManyCentres) {
  auto rows = make_floats(Shape::gaussian, 4000, 300, 7);
  for (int64_t i = 50; i < 4000; ++i) std::copy_n(rows.row(i % 50), 300, rows.row(i));
  KMeansParams params = oversampled_with(900);
  params.iterations = 2;
  ASSERT_TRUE(choose_start(params, 4000, 300).oversamples());
  EXPECT_EQ(fit(rows.view(), params).objective, 0);
}

}  // namespace
}  // namespace kith
