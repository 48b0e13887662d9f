// What a fit leaves: taken while others fit, kept, and given to another model.
#include <kith/kmeans.hpp>

#include <kith/error.hpp>

#include "cluster/fitted.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

KMeansParams four_clusters() {
  KMeansParams params;
  params.clusters = 4;
  return params;
}

TEST(KMeansSnapshot, OutlivesTheNextFitAndTheModel) {
  const auto rows = make_floats(Shape::gaussian, 500, 6, 1);
  std::optional<KMeans> model(four_clusters());
  EXPECT_THROW(model->snapshot(), InvalidState);
  model->fit(rows.view(), {}, cpu_resources(2));
  const Fitted expected = taken(*model);
  const KMeansSnapshot snapshot = model->snapshot();
  EXPECT_EQ(taken(snapshot), expected);
  model->fit(rows.view().slice(0, 300), {}, cpu_resources(2));
  EXPECT_NE(taken(*model), expected);
  EXPECT_EQ(taken(snapshot), expected);
  model.reset();
  EXPECT_EQ(taken(snapshot), expected);
}

TEST(KMeansSnapshot, IsOfOneFitWhileAnotherThreadFits) {
  const auto rows = make_floats(Shape::gaussian, 400, 6, 2);
  const MatrixView data[] = {rows.view().slice(0, 200), rows.view().slice(100, 300)};
  const Fitted expected[] = {fit(data[0], four_clusters(), {}, cpu_resources(1)),
                             fit(data[1], four_clusters(), {}, cpu_resources(1))};
  ASSERT_NE(expected[0], expected[1]);
  KMeans model(four_clusters());
  model.fit(data[0], {}, cpu_resources(1));
  std::thread fits([&] {
    const Resources resources = cpu_resources(1);
    for (int i = 1; i <= 40; ++i) model.fit(data[i % 2], {}, resources);
  });
  for (int i = 0; i < 2000; ++i) {
    const Fitted found = taken(model.snapshot());
    if (found != expected[0] && found != expected[1]) {
      ADD_FAILURE() << "snapshot " << i << " is of no fit";
      break;
    }
  }
  fits.join();
}

TEST(KMeansSnapshot, GoesOnBitForBit) {
  const auto rows = make_floats(Shape::gaussian, 500, 6, 3);
  for (const bool spherical : {false, true}) {
    KMeansParams params = four_clusters();
    params.spherical = spherical;
    KMeans fitted(params);
    fitted.fit(rows.view());
    KMeans other(params);
    other.restore(fitted.snapshot());
    EXPECT_EQ(taken(other), taken(fitted));
    other.partial_fit(rows.view().slice(0, 7));
    fitted.partial_fit(rows.view().slice(0, 7));
    EXPECT_EQ(taken(other), taken(fitted));
  }
}

TEST(KMeansSnapshot, OfNoFitIsRefused) {
  const auto rows = make_floats(Shape::gaussian, 50, 6, 4);
  const KMeansParams params = four_clusters();
  KMeans fitted(params);
  fitted.fit(rows.view());
  const KMeansSnapshot good = fitted.snapshot();
  KMeans other(params);
  for (const auto& spoil : std::vector<std::function<void(KMeansSnapshot&)>>{
           [](KMeansSnapshot& s) { s.centres = s.centres.slice(0, 3); }, [](KMeansSnapshot& s) { s.counts.size = 3; },
           [](KMeansSnapshot& s) { s.iterations = -1; },
           [](KMeansSnapshot& s) {
             static constexpr int32_t kLabels[] = {0, 4};
             s.labels = {kLabels, 2, {}};
           }}) {
    KMeansSnapshot broken = good;
    spoil(broken);
    EXPECT_THROW(other.restore(broken), InvalidArgument);
    EXPECT_FALSE(other.fitted());
  }
  other.restore(good);
  EXPECT_TRUE(other.fitted());
}

}  // namespace
}  // namespace kith
