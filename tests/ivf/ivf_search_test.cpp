#include <kith/error.hpp>

#include "ivf/ivf_check.hpp"

#include <cmath>
#include <limits>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

constexpr Metric kMetrics[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine};
const IvfCase kFlat = all_ivf_cases().front();

TEST(IvfSearch, EqualsTheReferenceForEveryCodeAndMetric) {
  const auto rows = make_floats(Shape::gaussian, 700, 12, 1);
  const auto queries = make_floats(Shape::gaussian, 40, 12, 2);
  for (const IvfCase& one : all_ivf_cases()) {
    for (const Metric metric : kMetrics) {
      SCOPED_TRACE(::testing::Message() << one << ", " << name_of(metric));
      const auto model = train(one, metric, rows, 13);
      const reference::Ivf truth(*model, rows);
      const auto segments = segments_of(*model, rows, 2);
      for (const int64_t probes : {1, 5}) {
        expect_neighbors(search(*model, segments, queries, {10, probes}), truth.search(queries, 10, probes), 10);
      }
    }
  }
}

TEST(IvfSearch, EqualsTheReferenceOnHardData) {
  for (const Shape shape : reference::kAllShapes) {
    for (const Metric metric : kMetrics) {
      for (const IvfCase& one : {kFlat, kProduct}) {
        SCOPED_TRACE(::testing::Message() << one << ", " << shape << ", " << name_of(metric));
        const auto rows = make_floats(shape, 500, 8, 1);
        const auto queries = make_floats(shape, 9, 8, 2);
        const auto model = train(one, metric, rows, 7);
        const reference::Ivf truth(*model, rows);
        expect_neighbors(search(*model, segments_of(*model, rows, 1), queries, {20, 3}), truth.search(queries, 20, 3),
                         20);
      }
    }
  }
}

TEST(IvfSearch, GivesTheSameBytesForAnyThreadsLimitsSegmentsAndProcessor) {
  const auto rows = make_floats(Shape::near_duplicates, 3000, 20, 3);
  const auto queries = make_floats(Shape::near_duplicates, 300, 20, 4);
  const auto model = train(kProduct, Metric::l2, rows, 11);
  const reference::Ivf reference(*model, rows);
  const auto truth = reference.search(queries, 15, 4);
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const int64_t parts : {1, 3}) {
      const auto segments = segments_of(*model, rows, parts);
      for (const int threads : {1, 2, 5}) {
        expect_neighbors(search(*model, segments, queries, {15, 4}, on_cpu(threads)), truth, 15);
      }
    }
  }
  const auto segments = segments_of(*model, rows, 2);
  const int64_t needed = search_ivf_footprint(*model, 3000, {15, 4}, false, 300, on_cpu(2)).host;
  EXPECT_THROW(search(*train(kProduct, Metric::l2, rows, 11), segments, queries, {15, 4}, on_cpu(2, needed / 2)),
               OutOfMemory);
  for (const int64_t limit : {needed, 2 * needed, 5 * needed}) {
    expect_neighbors(search(*train(kProduct, Metric::l2, rows, 11), segments, queries, {15, 4}, on_cpu(2, limit)),
                     truth, 15);
  }
}

TEST(IvfSearch, ManyQueriesOfFewLists) {
  const auto rows = make_floats(Shape::gaussian, 500, 9, 20);
  const auto queries = make_floats(Shape::gaussian, 150, 9, 21);
  for (const IvfCase& one : {kFlat, IvfCase{"PQ3x4", {kProductCode, DType::f32, 4, 3}, true}}) {
    const auto model = train(one, Metric::sqeuclidean, rows, 2);
    const auto truth = reference::Ivf(*model, rows).search(queries, 7, 2);
    const auto segments = segments_of(*model, rows, 1);
    for (const std::string& target : targets_for_next_case()) {
      SCOPED_TRACE(target);
      const ForcedTarget forced(target);
      expect_neighbors(search(*model, segments, queries, {7, 2}), truth, 7);
    }
  }
}

TEST(IvfSearch, ShapesThatAreOdd) {
  struct Odd {
    int64_t rows, cols, lists, parts, k, probes, queries;
  };
  for (const Odd& odd : {Odd{300, 1, 5, 1, 3, 2, 7}, Odd{300, 6, 4, 6, 301, 2, 5}, Odd{50, 33, 50, 1, 1, 50, 3},
                         Odd{20, 5, 1, 5, 4, 1, 2}, Odd{600, 70, 3, 7, 100, 9, 70}, Odd{1, 3, 1, 1, 2, 1, 1}}) {
    SCOPED_TRACE(::testing::Message() << odd.rows << " x " << odd.cols << ", " << odd.lists << " lists");
    const auto rows = make_floats(Shape::gaussian, odd.rows, odd.cols, 5);
    const auto queries = make_floats(Shape::gaussian, odd.queries, odd.cols, 6);
    for (const int bits : {4, 8}) {
      IvfCase one{"PQ", {kProductCode, DType::f32, bits, odd.parts}, true};
      if (odd.rows < 1 << bits) one = kFlat;  // too few to train such codes
      const auto model = train(one, Metric::sqeuclidean, rows, odd.lists);
      expect_neighbors(search(*model, segments_of(*model, rows, 1), queries, {odd.k, odd.probes}),
                       reference::Ivf(*model, rows).search(queries, odd.k, odd.probes), odd.k);
    }
  }
}

TEST(IvfSearch, OneListWithoutACentre) {
  const auto rows = make_floats(Shape::far_mean, 900, 12, 8);
  const auto queries = make_floats(Shape::far_mean, 30, 12, 9);
  for (const Metric metric : kMetrics) {
    for (const IvfCase& one : all_ivf_cases()) {
      SCOPED_TRACE(::testing::Message() << one << ", " << name_of(metric));
      const auto model = train(one, metric, rows, kOneList);
      EXPECT_EQ(model->lists(), 1);
      EXPECT_FALSE(model->residual);
      expect_neighbors(search(*model, segments_of(*model, rows, 2), queries, {12, 1}),
                       reference::Ivf(*model, rows).search(queries, 12, 1), 12);
    }
  }
}

TEST(IvfSearch, MoreListsWhereTheFirstHoldTooFew) {
  const auto rows = make_floats(Shape::gaussian, 400, 8, 10);
  const auto queries = make_floats(Shape::gaussian, 25, 8, 11);
  const auto model = train(kProduct, Metric::l2, rows, 100);
  const reference::Ivf truth(*model, rows);
  const auto segments = segments_of(*model, rows, 1);
  for (const int64_t k : {1, 50, 399, 400, 500}) {
    SCOPED_TRACE(k);
    expect_neighbors(search(*model, segments, queries, {k, 1}), truth.search(queries, k, 1), k);
  }
  std::vector<bool> kept(400);
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = i % 9 == 0;
  const auto bits = bits_of(kept);
  for (const int64_t k : {3, 40, 60}) {
    SCOPED_TRACE(k);
    expect_neighbors(search(*model, segments, queries, {k, 2, bits.data()}), truth.search(queries, k, 2, kept), k);
  }
}

TEST(IvfSearch, ListsThatAreEmptyOrHoldNearlyAll) {
  // 90 % of the rows are one cluster, and some centres are far from every row.
  auto rows = make_floats(Shape::gaussian, 1000, 8, 12);
  for (int64_t i = 0; i < 900; ++i) {
    for (int64_t c = 0; c < 8; ++c) rows.row(i)[c] = 50 + 0.01f * rows.row(i)[c];
  }
  const auto queries = make_floats(Shape::gaussian, 20, 8, 13);
  for (const Metric metric : kMetrics) {
    auto model = std::make_shared<IvfModel>(IvfModel{metric, MatrixBuffer(), nullptr, true});
    model->centres = MatrixBuffer(DType::f32, 6, 8, "centres", on_cpu());
    auto* const values = static_cast<float*>(model->centres.mutable_view().data());
    for (int64_t i = 0; i < 48; ++i) values[i] = i < 8 ? 50.0f : i < 16 ? 0.0f : static_cast<float>(1000 + i);
    model->codec = train(kProduct, metric, rows, 4)->codec;
    const reference::Ivf truth(*model, rows);
    for (const int64_t probes : {1, 2, 6, 99}) {
      SCOPED_TRACE(::testing::Message() << name_of(metric) << ", " << probes << " probes");
      expect_neighbors(search(*model, segments_of(*model, rows, 1), queries, {30, probes}),
                       truth.search(queries, 30, probes), 30);
    }
  }
}

TEST(IvfSearch, NothingToFind) {
  const auto rows = make_floats(Shape::gaussian, 50, 4, 14);
  const auto queries = make_floats(Shape::gaussian, 3, 4, 15);
  const auto model = train(kFlat, Metric::l2, rows, 5);
  const std::vector<uint64_t> nothing(9, kPadding);
  EXPECT_EQ(search(*model, {}, queries, {3, 2}), nothing);
  EXPECT_EQ(search(*model, segments_of(*model, reference::Matrix<float>(0, 4), 1), queries, {3, 2}), nothing);
  const uint64_t no_row = 0;
  EXPECT_EQ(search(*model, segments_of(*model, rows, 1), queries, {3, 2, &no_row}), nothing);
  EXPECT_TRUE(search(*model, segments_of(*model, rows, 1), reference::Matrix<float>(0, 4), {3, 2}).empty());
}

TEST(IvfSearch, RangeEqualsTheReference) {
  const auto rows = make_floats(Shape::gaussian, 600, 12, 16);
  const auto queries = make_floats(Shape::gaussian, 30, 12, 17);
  std::vector<bool> kept(600);
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = i % 3 != 0;
  const auto bits = bits_of(kept);
  for (const Metric metric : kMetrics) {
    for (const IvfCase& one : {kFlat, kProduct}) {
      const auto model = train(one, metric, rows, 10);
      const reference::Ivf truth(*model, rows);
      const auto segments = segments_of(*model, rows, 2);
      const float some = key_of_ordered(ordered_of(truth.search(queries, 40, 10)[39]));
      for (const float most : {some, -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()}) {
        for (const bool filtered : {false, true}) {
          SCOPED_TRACE(::testing::Message() << one << ", " << name_of(metric) << ", up to " << most);
          const IvfSearch range{.probes = 3, .kept = filtered ? bits.data() : nullptr, .most = most};
          const RangeNeighbors hits = range_search_ivf(*model, segments, queries.view(), range, on_cpu());
          const auto expected = truth.range(queries, most, 3, filtered ? kept : std::vector<bool>());
          for (int64_t q = 0; q < queries.rows; ++q) {
            const int64_t first = hits.offsets()[q];
            const auto found =
                packed(metric, hits.ids() + first, hits.distances() + first, hits.offsets()[q + 1] - first);
            ASSERT_EQ(found, expected[static_cast<size_t>(q)]) << "query " << q;
          }
        }
      }
    }
  }
}

TEST(IvfSearch, RefusesWhatMakesNoSense) {
  const auto rows = make_floats(Shape::gaussian, 50, 4, 18);
  const auto model = train(kFlat, Metric::l2, rows, 5);
  const auto segments = segments_of(*model, rows, 1);
  EXPECT_THROW(search(*model, segments, rows, {0, 1}), InvalidArgument);
  EXPECT_THROW(search(*model, segments, rows, {1, 0}), InvalidArgument);
  EXPECT_THROW(search(*model, segments, reference::Matrix<float>(2, 5), {1, 1}), InvalidArgument);
  const auto other = train(kFlat, Metric::l2, rows, 6);
  EXPECT_THROW(search(*other, segments, rows, {1, 1}), InvalidArgument);
}

TEST(IvfSearch, CanBeCancelled) {
  const auto rows = make_floats(Shape::gaussian, 200, 8, 19);
  const auto model = train(kFlat, Metric::l2, rows, 5);
  CancelToken token;
  token.request();
  EXPECT_THROW(search(*model, segments_of(*model, rows, 1), rows, {1, 1}, on_cpu().with_cancel(token)), Cancelled);
}

}  // namespace
}  // namespace kith
