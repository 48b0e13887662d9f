#include <kith/kmeans.hpp>

#include "cluster/fitted.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

// Far groups, so that a good clustering is known.
reference::Matrix<float> groups(int64_t rows, int64_t count) {
  auto data = make_floats(Shape::gaussian, rows, 6, 1);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < 6; ++c) data.row(i)[c] += static_cast<float>(50 * ((i % count) * (c + 3) % 11));
  }
  return data;
}

TEST(MiniBatch, ComesNearLloyd) {
  const auto rows = groups(6000, 11);
  KMeansParams params;
  params.clusters = 11;
  const double lloyd = fit(rows.view(), params).objective;
  params.batch_size = 256;
  const Fitted found = fit(rows.view(), params);
  EXPECT_LT(found.objective, 1.02 * lloyd);
  EXPECT_EQ(found.labels.size(), 6000u);
  EXPECT_EQ(found.history.size(), static_cast<size_t>(found.iterations));
}

TEST(MiniBatch, ABatchLargerThanTheDataIsCut) {
  const auto rows = groups(100, 5);
  KMeansParams params;
  params.clusters = 5;
  params.batch_size = 100000;
  EXPECT_EQ(fit(rows.view(), params).labels.size(), 100u);
}

// Every centre is the mean of all rows it was given.
TEST(PartialFit, MeansOverAllBatches) {
  reference::Matrix<float> centres(2, 1), first(3, 1), second(2, 1);
  centres.values = {0, 100};
  first.values = {1, 3, 98};
  second.values = {8, 104};
  KMeansParams params;
  params.clusters = 2;
  params.init = KMeansInit::given;
  KMeansInput input;
  input.centres = centres.view();
  KMeans model(params);
  model.partial_fit(first.view(), input);
  EXPECT_EQ(taken(model).centres, (std::vector<float>{2, 98}));
  EXPECT_EQ(taken(model).labels, (std::vector<int32_t>{0, 0, 1}));
  const float weights[] = {2, 3};
  KMeansInput weighted;
  weighted.weights = {weights, 2, {}};
  model.partial_fit(second.view(), weighted);
  EXPECT_EQ(taken(model).centres, (std::vector<float>{5, 102.5f}));
  EXPECT_EQ(taken(model).counts, (std::vector<double>{4, 4}));
  EXPECT_EQ(model.iterations(), 2);
}

TEST(PartialFit, ALimitThatCutsTheBatchUpChangesNothing) {
  const auto rows = groups(100000, 4);
  KMeansParams params;
  params.clusters = 4;
  params.init = KMeansInit::random;
  KMeans free(params);
  KMeans tight(params);
  for (int batch = 0; batch < 2; ++batch) {
    free.partial_fit(rows.view());
    tight.partial_fit(rows.view(), {}, cpu_resources(2, int64_t{15} << 18));
  }
  EXPECT_EQ(taken(tight), taken(free));
}

TEST(PartialFit, GoesOnFromCentresThatWereSet) {
  const auto rows = groups(500, 4);
  KMeansParams params;
  params.clusters = 4;
  KMeans fitted(params);
  fitted.fit(rows.view());
  KMeans other(params);
  other.set_centres(fitted.snapshot().centres);
  std::vector<int32_t> labels(500);
  other.predict(rows.view(), labels.data(), nullptr);
  EXPECT_EQ(labels, taken(fitted).labels);
  other.partial_fit(rows.view().slice(0, 1));  // fewer rows than centres
  EXPECT_EQ(other.iterations(), 1);
}

}  // namespace
}  // namespace kith
