#include <kith/error.hpp>
#include <kith/kmeans.hpp>

#include "exact/exact_check.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

// Too small a limit is refused with the limit that does: the next try has the result of no limit.
void expect_named_limit(const std::function<void(const Resources&)>& work) {
  try {
    work(on_cpu(2, 64));
    FAIL() << "64 bytes were enough";
  } catch (const OutOfMemory& error) {
    SCOPED_TRACE(error.what());
    ASSERT_GT(error.bytes_needed(), 64);
    EXPECT_NO_THROW(work(on_cpu(2, error.bytes_needed())));
  }
}

class KMeansLimit : public ::testing::TestWithParam<float> {
 protected:
  KMeansLimit() : rows_(make_floats(Shape::gaussian, 3000, 24, 1)), kmeans_(params()) {
    for (float& value : rows_.values) value *= GetParam();  // where they are huge, they are scaled
    kmeans_.fit(rows_.view(), {}, on_cpu());
  }
  static KMeansParams params() {
    KMeansParams params;
    params.clusters = 40;
    params.iterations = 3;
    return params;
  }

  reference::Matrix<float> rows_;
  KMeans kmeans_;
};

TEST_P(KMeansLimit, OfPredictDoes) {
  std::vector<int32_t> truth(3000);
  std::vector<float> far(3000);
  kmeans_.predict(rows_.view(), {truth.data(), 3000, {}}, {far.data(), 3000, {}}, on_cpu());
  std::vector<int32_t> labels(3000, -1);
  std::vector<float> distances(3000);
  expect_named_limit([&](const Resources& resources) {
    kmeans_.predict(rows_.view(), {labels.data(), 3000, {}}, {distances.data(), 3000, {}}, resources);
  });
  EXPECT_EQ(labels, truth);
  EXPECT_EQ(distances, far);
}

TEST_P(KMeansLimit, OfTransformDoes) {
  MatrixBuffer out(DType::f32, 3000, 40, "distances", Resources());
  expect_named_limit(
      [&](const Resources& resources) { kmeans_.transform(rows_.view(), out.mutable_view(), resources); });
}

TEST_P(KMeansLimit, OfPartialFitDoesAndARefusedOneChangesNothing) {
  KMeans other(params());
  expect_named_limit([&](const Resources& resources) { other.partial_fit(rows_.view(), {}, resources); });
  EXPECT_EQ(other.iterations(), 1);
  expect_named_limit([&](const Resources& resources) { other.partial_fit(rows_.view(), {}, resources); });
  EXPECT_EQ(other.iterations(), 2);
}

INSTANTIATE_TEST_SUITE_P(Scales, KMeansLimit, ::testing::Values(1.0f, 1e25f));

}  // namespace
}  // namespace kith
