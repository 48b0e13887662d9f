// Every metric with every dtype, on every kind of data.
#include <kith/error.hpp>

#include "exact/exact_check.hpp"
#include "kernels/forced_target.hpp"

#include <cmath>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;
using reference::stored_as;
using reference::without_sign;

constexpr Metric kDirect[] = {Metric::l1, Metric::linf, Metric::chi_square};
constexpr Metric kAll[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                           Metric::l1, Metric::linf,        Metric::chi_square};

TEST(KnnMetrics, DirectMetricsEqualTheReferenceOnEveryKindOfData) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(shape);
    for (const Metric metric : kDirect) {
      SCOPED_TRACE(name_of(metric));
      const auto base = without_sign(make_floats(shape, 500, 33, 1));
      check(without_sign(make_floats(shape, 3, 33, 2)), base, {7, metric});
      check(without_sign(make_floats(shape, 30, 33, 2)), base, {20, metric});
    }
  }
}

TEST(KnnMetrics, HammingCountsBits) {
  for (const int64_t cols : {1, 7, 8, 16, 33, 64, 100, 1100}) {
    for (const uint32_t largest : {1u, 255u}) {  // few distances with many ties, and all
      for (const int64_t queries : {2, 20}) {
        SCOPED_TRACE(::testing::Message() << queries << " queries of " << cols << " bytes up to " << largest);
        check(make_bytes(queries, cols, 1, largest), make_bytes(400, cols, 2, largest), {30, Metric::hamming});
      }
    }
  }
}

template <typename T>
void expect_every_metric() {
  for (const int64_t cols : {1, 5, 16, 100}) {
    for (const int64_t queries : {2, 20}) {
      for (const Metric metric : kAll) {
        SCOPED_TRACE(::testing::Message() << name_of(metric) << " " << queries << " x " << cols);
        auto query_floats = make_floats(Shape::gaussian, queries, cols, 1);
        auto base_floats = make_floats(Shape::gaussian, 300, cols, 2);
        if (metric == Metric::chi_square) {
          query_floats = without_sign(query_floats);
          base_floats = without_sign(base_floats);
        }
        const auto base = stored_as<T>(base_floats);
        check(stored_as<T>(query_floats), base, {10, metric});
        check(query_floats, base, {10, metric});  // mixed: the values widen
        check(stored_as<T>(query_floats), base_floats, {10, metric});
      }
    }
  }
}

TEST(KnnMetrics, TakesHalves) { expect_every_metric<Half>(); }
TEST(KnnMetrics, TakesBrainFloats) { expect_every_metric<BFloat16>(); }
TEST(KnnMetrics, TakesSignedBytes) { expect_every_metric<int8_t>(); }
TEST(KnnMetrics, TakesUnsignedBytes) { expect_every_metric<uint8_t>(); }

TEST(KnnMetrics, EveryInstructionSetGivesTheSame) {
  const auto queries = without_sign(make_floats(Shape::gaussian, 19, 40, 1));
  const auto base = without_sign(make_floats(Shape::gaussian, 300, 40, 2));
  for (const Metric metric : kAll) {
    SCOPED_TRACE(name_of(metric));
    check_with_every_target(queries, base, {10, metric});
    check_with_every_target(stored_as<Half>(queries), stored_as<BFloat16>(base), {10, metric});
    check_with_every_target(stored_as<int8_t>(queries), stored_as<Half>(base), {10, metric});
  }
  check_with_every_target(make_bytes(19, 50, 1), make_bytes(300, 50, 2), {10, Metric::hamming});
  check_with_every_target(make_bytes(2, 50, 1), make_bytes(300, 50, 2), {10, Metric::hamming});
}

TEST(KnnMetrics, ANanIsFoundInEveryDtypeOrComesLast) {
  for (const Metric metric : kAll) {
    for (const float bad : {NAN, INFINITY})
      for (const int64_t count : {3, 20}) {
        SCOPED_TRACE(::testing::Message() << name_of(metric) << " " << bad << " " << count);
        auto floats = without_sign(make_floats(Shape::gaussian, 90, 17, 2));
        floats.row(70)[16] = bad;
        const auto queries = without_sign(make_floats(Shape::gaussian, count, 17, 1));
        const auto halves = stored_as<Half>(floats);
        EXPECT_THROW(knn(queries.view(), floats.view(), {5, metric}, on_cpu()), InvalidArgument);
        EXPECT_THROW(knn(queries.view(), halves.view(), {5, metric}, on_cpu()), InvalidArgument);
        EXPECT_THROW(knn(halves.view(), queries.view(), {5, metric}, on_cpu()), InvalidArgument);
        check(queries, floats, {90, metric, false});
        check(queries, stored_as<BFloat16>(floats), {90, metric, false});
      }
  }
}

TEST(KnnMetrics, ChiSquareRefusesValuesBelowZero) {
  auto base = without_sign(make_floats(Shape::gaussian, 50, 9, 2));
  base.row(31)[4] = -1e-9f;
  for (const bool check_finite : {true, false})
    for (const int64_t count : {3, 20}) {
      const auto queries = without_sign(make_floats(Shape::gaussian, count, 9, 1));
      try {
        knn(queries.view(), base.view(), {5, Metric::chi_square, check_finite}, on_cpu());
        FAIL();
      } catch (const InvalidArgument& error) {
        EXPECT_NE(std::string(error.what()).find("base row 31"), std::string::npos) << error.what();
      }
      EXPECT_THROW(knn(base.view(), queries.view(), {5, Metric::chi_square, check_finite}, on_cpu()), InvalidArgument);
    }
}

TEST(KnnMetrics, HammingTakesBytesOnly) {
  const auto bytes = make_bytes(5, 8, 1);
  const auto signed_bytes = stored_as<int8_t>(make_floats(Shape::gaussian, 5, 8, 1));
  EXPECT_THROW(knn(bytes.view(), signed_bytes.view(), {1, Metric::hamming}, on_cpu()), InvalidArgument);
  EXPECT_THROW(knn(signed_bytes.view(), bytes.view(), {1, Metric::hamming}, on_cpu()), InvalidArgument);
}

}  // namespace
}  // namespace kith
