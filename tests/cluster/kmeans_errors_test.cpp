#include <kith/error.hpp>
#include <kith/kmeans.hpp>

#include "cluster/fitted.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using ::testing::HasSubstr;

template <typename Error, typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

KMeansParams with_clusters(int64_t clusters) {
  KMeansParams params;
  params.clusters = clusters;
  return params;
}

TEST(KMeansErrors, Parameters) {
  const auto refused = [](const auto& change) {
    KMeansParams params;
    change(params);
    return message_of<InvalidArgument>([&] { const KMeans model(params); });
  };
  EXPECT_THAT(refused([](KMeansParams& p) { p.clusters = 0; }), HasSubstr("clusters = 0"));
  EXPECT_THAT(refused([](KMeansParams& p) { p.iterations = 0; }), HasSubstr("iterations = 0"));
  EXPECT_THAT(refused([](KMeansParams& p) { p.n_init = 0; }), HasSubstr("n_init = 0"));
  EXPECT_THAT(refused([](KMeansParams& p) { p.tol = -1; }), HasSubstr("tol = -1"));
  EXPECT_THAT(refused([](KMeansParams& p) { p.tol = NAN; }), HasSubstr("tol = nan"));
  EXPECT_THAT(refused([](KMeansParams& p) { p.tol = INFINITY; }), HasSubstr("tol = inf; it must be a finite number"));
  EXPECT_THAT(refused([](KMeansParams& p) { p.batch_size = -5; }), HasSubstr("batch_size = -5"));
  EXPECT_THAT(refused([](KMeansParams& p) { p.max_points_per_centre = -1; }), HasSubstr("max_points_per_centre"));
  EXPECT_THAT(refused([](KMeansParams& p) { p.init_points_per_centre = -2; }), HasSubstr("init_points_per_centre"));
  EXPECT_THAT(message_of<InvalidArgument>([] { parse_kmeans_init("best"); }), HasSubstr("kmeans++, random, given"));
  EXPECT_EQ(parse_kmeans_init(name_of(KMeansInit::random)), KMeansInit::random);
}

TEST(KMeansErrors, ABatchWithoutRows) {
  const auto rows = make_floats(Shape::gaussian, 5, 3, 1);
  KMeans model(with_clusters(2));
  const auto text = [&] {
    return message_of<InvalidArgument>([&] { model.partial_fit(rows.view().slice(0, 0), {}, cpu_resources(1)); });
  };
  EXPECT_THAT(text(), HasSubstr("given no rows"));
  model.partial_fit(rows.view(), {}, cpu_resources(1));
  EXPECT_THAT(text(), HasSubstr("given no rows"));
}

TEST(KMeansErrors, WhatIsFarTooLargeIsWarnedOf) {
  auto rows = make_floats(Shape::gaussian, 600, 3, 1);
  // None of the rows that the scale follows from, and more than there are centres.
  rows.row(1)[0] = rows.row(3)[1] = rows.row(5)[2] = 3e38f;
  std::vector<std::string> warnings;
  const Resources resources = cpu_resources(1).with_log([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warnings.emplace_back(text);
  });
  fit(rows.view(), with_clusters(2), {}, resources);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings.front(), HasSubstr("overflow"));
  // The same of rows among tiny ones, which are made larger.
  for (float& value : rows.values) value *= 0x1p-98f;
  rows.row(1)[0] = rows.row(3)[1] = rows.row(5)[2] = 1e12f;
  fit(rows.view(), with_clusters(2), {}, resources);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings.back(), warnings.front());
}

TEST(KMeansErrors, MoreClustersThanRows) {
  const auto rows = make_floats(Shape::gaussian, 5, 3, 1);
  EXPECT_THAT(message_of<InvalidArgument>([&] { fit(rows.view(), with_clusters(6)); }),
              HasSubstr("5 rows cannot be split into 6 clusters"));
}

TEST(KMeansErrors, ANanIsNamedByItsRow) {
  auto rows = make_floats(Shape::gaussian, 3000, 9, 2);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    rows.row(2345)[4] = bad;
    rows.row(2999)[0] = bad;
    EXPECT_THAT(message_of<InvalidArgument>([&] { fit(rows.view(), with_clusters(4)); }), HasSubstr("row 2345 "));
    KMeans model(with_clusters(4));
    EXPECT_THAT(message_of<InvalidArgument>([&] { model.partial_fit(rows.view(), {}, cpu_resources(2)); }),
                HasSubstr("row 2345 "));
    EXPECT_FALSE(model.fitted());
  }
}

// Undefined, but no crash and no endless loop.
TEST(KMeansErrors, WithoutTheCheckANanDoesNoHarm) {
  auto rows = make_floats(Shape::gaussian, 500, 20, 3);
  rows.row(123)[4] = NAN;
  rows.row(200)[0] = INFINITY;
  KMeansParams params = with_clusters(10);
  params.check_finite = false;
  EXPECT_EQ(fit(rows.view(), params).labels.size(), 500u);
}

TEST(KMeansErrors, Weights) {
  const auto rows = make_floats(Shape::gaussian, 20, 3, 4);
  const auto refused = [&](std::vector<float> weights) {
    KMeansInput input;
    input.weights = {weights.data(), static_cast<int64_t>(weights.size()), {}};
    return message_of<InvalidArgument>([&] { fit(rows.view(), with_clusters(2), input); });
  };
  EXPECT_THAT(refused(std::vector<float>(19, 1.0f)), HasSubstr("19 weights for 20 rows"));
  EXPECT_THAT(refused(std::vector<float>(20, 0.0f)), HasSubstr("all weights are 0"));
  std::vector<float> weights(20, 1.0f);
  weights[7] = -1;
  EXPECT_THAT(refused(weights), HasSubstr("weight 7 is -1"));
}

TEST(KMeansErrors, GivenCentres) {
  const auto rows = make_floats(Shape::gaussian, 20, 3, 5);
  KMeansParams params = with_clusters(2);
  params.init = KMeansInit::given;
  EXPECT_THAT(message_of<InvalidArgument>([&] { fit(rows.view(), params); }), HasSubstr("must be 2 x 3"));
  KMeansInput input;
  input.centres = rows.view().slice(0, 3);
  EXPECT_THAT(message_of<InvalidArgument>([&] { fit(rows.view(), params, input); }), HasSubstr("centres of 3 x 3"));
}

TEST(KMeansErrors, BeforeTheFirstFit) {
  const auto rows = make_floats(Shape::gaussian, 20, 3, 6);
  KMeans model(with_clusters(2));
  int32_t label = 0;
  EXPECT_THAT(message_of<InvalidState>([&] { model.predict(rows.view(), &label, nullptr); }), HasSubstr("fit"));
  model.fit(rows.view());
  const auto others = make_floats(Shape::gaussian, 1, 4, 6);
  EXPECT_THAT(message_of<InvalidArgument>([&] { model.predict(others.view(), &label, nullptr); }),
              HasSubstr("4 columns"));
}

TEST(KMeansErrors, PredictionsNameTheFirstRowThatIsNotFinite) {
  for (const int64_t clusters : {3, 20, 600}) {  // three kernels; pieces have fewer rows than there are
    auto rows = make_floats(Shape::gaussian, 30000, 20, 8);
    KMeansParams params = with_clusters(clusters);
    params.iterations = 1;
    params.init = KMeansInit::random;
    KMeans model(params);
    model.fit(rows.view().slice(0, 1000));
    rows.row(29123)[19] = NAN;
    rows.row(29900)[0] = INFINITY;
    std::vector<int32_t> labels(30000);
    EXPECT_THAT(message_of<InvalidArgument>([&] { model.predict(rows.view(), labels.data(), nullptr); }),
                HasSubstr("29123"));
  }
}

TEST(KMeansErrors, AFailedFitLeavesTheFormerState) {
  auto rows = make_floats(Shape::gaussian, 50, 3, 7);
  KMeans model(with_clusters(3));
  model.fit(rows.view());
  const Fitted before = taken(model);
  rows.row(3)[0] = NAN;
  EXPECT_THROW(model.fit(rows.view()), InvalidArgument);
  EXPECT_THROW(model.partial_fit(rows.view()), InvalidArgument);
  EXPECT_EQ(taken(model), before);
}

TEST(KMeansErrors, CanBeCancelled) {
  const auto rows = make_floats(Shape::gaussian, 20000, 32, 8);
  for (const std::string_view stage : {"survey", "kmeans++", "kmeans"}) {
    ResourceOptions options;
    options.device = Device::cpu();
    options.threads = 2;
    const CancelToken token = options.cancel;
    options.progress = [&](const Progress& progress) {
      if (progress.stage == stage) token.request();
    };
    KMeansParams params = with_clusters(64);
    params.iterations = 1000;
    params.tol = 0;
    params.n_init = 2;  // the end of the first run is told too, at the latest
    KMeans model(params);
    EXPECT_THROW(model.fit(rows.view(), {}, Resources(options)), Cancelled) << stage;
    EXPECT_FALSE(model.fitted());
  }
}

}  // namespace
}  // namespace kith
