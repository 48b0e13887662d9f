#include <kith/error.hpp>

#include "ivf/ivf_check.hpp"

#include <cmath>
#include <cstring>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

IvfSpec flat_spec(int64_t lists) {
  IvfSpec spec;
  spec.lists = lists;
  return spec;
}

std::shared_ptr<const IvfModel> train_on(const IvfSpec& spec, Metric metric, const MatrixView& rows,
                                         const Resources& resources) {
  ViewSource source(rows);
  return train_ivf(spec, metric, source, 3, resources);
}

TEST(IvfTrain, ChoosesTheNumberOfLists) {
  EXPECT_EQ(ivf_lists(flat_spec(0), 99), 9);
  EXPECT_EQ(ivf_lists(flat_spec(0), 100), 10);
  EXPECT_EQ(ivf_lists(flat_spec(0), 0), 1);
  EXPECT_EQ(ivf_lists(flat_spec(12), 5), 12);
  EXPECT_EQ(ivf_lists(flat_spec(kOneList), 500), 1);
  IvfSpec spec;
  spec.expected_rows = int64_t{1} << 40;
  EXPECT_EQ(ivf_lists(spec, 99), int64_t{1} << 20);
}

TEST(IvfTrain, ManyListsHaveFewerRowsEachFewerIterationsAndARandomStart) {
  EXPECT_EQ(centre_training({}, 1024, INT64_MAX).rows, 1024 * 256);
  EXPECT_EQ(centre_training({}, 1024, 1000).iterations, 20);
  EXPECT_EQ(centre_training({}, 16384, 1000).iterations, 20);
  EXPECT_EQ(centre_training({}, 16385, INT64_MAX).iterations, 10);
  EXPECT_EQ(centre_training({}, 1024, 1024 * 156 - 1).coarse_rows, 0);
  EXPECT_EQ(centre_training({}, 1024, 1024 * 156).coarse_rows, 1024 * 39);
  EXPECT_EQ(centre_training({}, 1024, INT64_MAX).coarse_rows, 1024 * 64);
  EXPECT_EQ(centre_training({}, 1024, INT64_MAX).iterations, 8);
  EXPECT_EQ(centre_training({}, 16385, INT64_MAX).coarse_rows, 0);
  EXPECT_EQ(centre_training({}, 1024, INT64_MAX).init, KMeansInit::random);
  EXPECT_EQ(centre_training({}, 65536, INT64_MAX).rows, int64_t{1} << 24);
  EXPECT_EQ(centre_training({}, 262144, INT64_MAX).rows, int64_t{1} << 24);
  EXPECT_EQ(centre_training({}, 262144, INT64_MAX).iterations, 10);
  EXPECT_EQ(centre_training({}, 262144, INT64_MAX).init, KMeansInit::random);
  EXPECT_EQ(centre_training({}, 1 << 20, INT64_MAX).rows, (int64_t{1} << 20) * kFewPointsPerCentre);
  IvfSpec asked;
  asked.iterations = 3;
  asked.most_points_per_centre = 50;
  asked.init = KMeansInit::kmeans_plus_plus;
  EXPECT_EQ(centre_training(asked, 1024, INT64_MAX).rows, 1024 * 50);
  EXPECT_EQ(centre_training(asked, 1024, INT64_MAX).iterations, 3);
  EXPECT_EQ(centre_training(asked, 1024, INT64_MAX).init, KMeansInit::kmeans_plus_plus);
  EXPECT_EQ(centre_training(asked, INT64_MAX / 2, INT64_MAX).rows, INT64_MAX);
}

TEST(IvfTrain, IsTheSameForAnyThreads) {
  const auto rows = make_floats(Shape::gaussian, 900, 8, 1);
  IvfSpec spec = flat_spec(5);
  spec.code = {kProductCode, DType::f32, 4, 2};
  spec.most_points_per_centre = 50;
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    const auto one = train_on(spec, metric, rows.view(), on_cpu(1));
    const auto more = train_on(spec, metric, rows.view(), on_cpu(4));
    EXPECT_EQ(std::memcmp(one->centres.view().data(), more->centres.view().data(), 5 * 8 * 4), 0);
    EXPECT_EQ(one->codec->values(), more->codec->values());
  }
}

TEST(IvfTrain, CentresHaveLengthOneForProductsAndAngles) {
  const auto rows = make_floats(Shape::mixed_norms, 600, 8, 2);
  for (const Metric metric : {Metric::inner_product, Metric::cosine}) {
    const auto model = train_on(flat_spec(6), metric, rows.view(), on_cpu());
    for (int64_t list = 0; list < 6; ++list) {
      double squares = 0;
      for (int64_t c = 0; c < 8; ++c) squares += static_cast<double>(model->centre(list)[c]) * model->centre(list)[c];
      EXPECT_NEAR(std::sqrt(squares), 1, 1e-5) << name_of(metric);
    }
  }
}

TEST(IvfTrain, FewerDistinctRowsThanCentres) {
  const auto rows = make_floats(Shape::all_equal, 100, 4, 3);
  const auto model = train_on(flat_spec(10), Metric::l2, rows.view(), on_cpu());
  const reference::Ivf truth(*model, rows);
  expect_neighbors(search(*model, segments_of(*model, rows, 1), rows, {5, 3}), truth.search(rows, 5, 3), 5);
}

TEST(IvfTrain, SaysWhenThereAreFewRows) {
  const auto rows = make_floats(Shape::gaussian, 100, 4, 4);
  int lines = 0;
  const Resources resources = on_cpu().with_log(
      [&](LogLevel, std::string_view text) { lines += text.find("training rows") != std::string_view::npos; });
  train_on(flat_spec(2), Metric::l2, rows.view(), resources);
  EXPECT_EQ(lines, 0);
  train_on(flat_spec(3), Metric::l2, rows.view(), resources);
  EXPECT_EQ(lines, 1);
  EXPECT_THROW(train_on(flat_spec(101), Metric::l2, rows.view(), resources), InvalidArgument);
  EXPECT_THROW(train_on(flat_spec(1), Metric::l2, rows.view().slice(0, 0), resources), InvalidArgument);
  EXPECT_THROW(train_on(flat_spec(-2), Metric::l2, rows.view(), resources), InvalidArgument);
  EXPECT_THROW(train_on(flat_spec(2), Metric::l1, rows.view(), resources), Unsupported);
}

}  // namespace
}  // namespace kith
