#include <kith/error.hpp>
#include <kith/index.hpp>
#include <kith/range_search.hpp>

#include "exact/exact_check.hpp"
#include "io/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;
using reference::without_sign;

constexpr Metric kRangeMetrics[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                               Metric::l1, Metric::linf,        Metric::chi_square};

void expect_same(const RangeView& found, const reference::RangeResult& truth) {
  ASSERT_EQ(std::vector<int64_t>(found.offsets, found.offsets + found.queries + 1), truth.offsets);
  ASSERT_EQ(std::vector<int64_t>(found.ids, found.ids + found.size()), truth.ids);
  ASSERT_EQ(std::vector<float>(found.distances, found.distances + found.size()), truth.distances);
}

template <typename Q, typename X>
void check_range(const reference::Matrix<Q>& queries, const reference::Matrix<X>& base, const RangeParams& params,
                 const Resources& resources = on_cpu()) {
  const reference::RangeResult truth = reference::range_search(queries, base, params);
  expect_same(range_search(queries.view(), base.view(), params, resources).view(), truth);
  if (queries.rows < 6 || base.rows == 0) return;  // an index packs its rows from here on
  Index index("Flat", {params.metric, false});     // rows that a filter leaves out may be bad
  index.add(base.view(), Ownership::borrow, resources);
  expect_same(index.range_search(queries.view(), {params.radius, params.filter}, resources).view(), truth);
}

// The distance of the n-th neighbour of the first query: a radius with something on its edge.
template <typename Q, typename X>
float nth_distance(const reference::Matrix<Q>& queries, const reference::Matrix<X>& base, Metric metric, int64_t n) {
  return knn(queries.view(), base.view(), {n, metric}, on_cpu()).distances(0)[n - 1];
}

TEST(RangeSearch, EqualsTheReferenceForEveryMetricAndSize) {
  for (const Metric metric : kRangeMetrics) {
    for (const int64_t queries : {2, 20}) {
      for (const int64_t n : {1, 10, 500, 1200}) {  // of 1,200 rows
        SCOPED_TRACE(::testing::Message() << name_of(metric) << ", " << queries << " queries, about " << n << " rows");
        const auto base = without_sign(make_floats(Shape::gaussian, 1200, 17, 1));
        const auto query_rows = without_sign(make_floats(Shape::gaussian, queries, 17, 2));
        check_range(query_rows, base, {nth_distance(query_rows, base, metric, n), metric});
      }
    }
  }
}

TEST(RangeSearch, EqualsTheReferenceOnHardData) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(shape);
    const auto base = make_floats(shape, 600, 9, 1);
    const auto queries = make_floats(shape, 12, 9, 2);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
      check_range(queries, base, {nth_distance(queries, base, metric, 40), metric});
    }
  }
  const auto bits = make_bytes(600, 4, 1, 3);
  check_range(make_bytes(12, 4, 2, 3), bits, {2, Metric::hamming});
  check_range(make_bytes(12, 4, 2), make_bytes(600, 4, 1), {1000, Metric::sqeuclidean});
}

TEST(RangeSearch, IncludesItsRadiusAndMayFindNothing) {
  const auto base = make_floats(Shape::sorted, 10, 1, 1);  // 0, 1, 2, ...
  const reference::Matrix<float> zero(1, 1);
  EXPECT_EQ(range_search(zero.view(), base.view(), {3, Metric::l2}, on_cpu()).size(), 4);
  EXPECT_EQ(range_search(zero.view(), base.view(), {2.999f, Metric::l2}, on_cpu()).size(), 3);
  EXPECT_EQ(range_search(zero.view(), base.view(), {-1, Metric::l2}, on_cpu()).size(), 0);
  EXPECT_EQ(range_search(zero.view(), base.view(), {INFINITY, Metric::l2}, on_cpu()).size(), 10);
  const RangeNeighbors none = range_search(base.view().slice(0, 0), base.view(), {3, Metric::l2}, on_cpu());
  EXPECT_EQ(none.queries(), 0);
  EXPECT_EQ(none.offsets()[0], 0);
  const RangeNeighbors empty = range_search(base.view(), base.view().slice(0, 0), {3, Metric::l2}, on_cpu());
  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(empty.queries(), 10);
  EXPECT_THROW(range_search(zero.view(), base.view(), {NAN, Metric::l2}, on_cpu()), InvalidArgument);
}

TEST(RangeSearch, AFilterAndTheThreadsChangeNothingElse) {
  const auto base = make_floats(Shape::gaussian, 3000, 10, 1);
  const auto queries = make_floats(Shape::gaussian, 30, 10, 2);
  for (const int64_t every : {1, 2, 50}) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 3000; i += every) ids.push_back(i);
    const RowFilter filter = RowFilter::rows(ids.data(), static_cast<int64_t>(ids.size()));
    const RangeParams params{3.5f, Metric::l2, true, filter};
    check_range(queries, base, params);
    check_range(queries, base, params, on_cpu(1));
    check_range(queries, base, params, on_cpu(3, 4 << 20));
  }
}

TEST(RangeSearch, AnIndexGivesTheSame) {
  const auto base = make_floats(Shape::gaussian, 2000, 10, 1);
  Index index("Flat", {.metric = Metric::l2});
  index.add(base.view().slice(0, 1500), Ownership::borrow, on_cpu());
  index.add(base.view().slice(1500, 500), Ownership::copy, on_cpu());
  std::vector<uint8_t> mask(2000, 1);
  mask[7] = mask[1700] = 0;
  for (const int64_t count : {3, 40}) {
    const auto queries = make_floats(Shape::gaussian, count, 10, 2);
    expect_same(index.range_search(queries.view(), {.radius = 3.0f}, on_cpu()).view(),
                reference::range_search(queries, base, {3.0f, Metric::l2}));
    const RowFilter filter = RowFilter::mask(mask.data(), 2000);
    expect_same(index.range_search(queries.view(), {.radius = 3.0f, .filter = filter}, on_cpu()).view(),
                reference::range_search(queries, base, {3.0f, Metric::l2, true, filter}));
  }
}

TEST(RangeSearch, WarnsOfARadiusBelowEveryDistance) {
  const auto rows = make_floats(Shape::gaussian, 20, 3, 1);
  int warnings = 0;
  const Resources resources =
      on_cpu().with_log([&](LogLevel level, std::string_view) { warnings += level == LogLevel::warning ? 1 : 0; });
  for (const Metric metric : {Metric::l2, Metric::l1, Metric::inner_product, Metric::cosine}) {
    range_search(rows.view(), rows.view(), {-0.5f, metric}, resources);
  }
  EXPECT_EQ(warnings, 2);
  range_search(rows.view(), rows.view(), {0.0f, Metric::l2}, resources);
  EXPECT_EQ(warnings, 2);
}

TEST(RangeSearch, FilesGoOutBatchByBatch) {
  const testing::TemporaryDirectory directory;
  const auto base = make_floats(Shape::gaussian, 700, 6, 1);
  const auto queries = make_floats(Shape::gaussian, 25, 6, 2);
  write_vectors(directory.path("base.fbin"), base.view());
  write_vectors(directory.path("queries.fbin"), queries.view());
  for (const float radius : {2.0f, -1.0f}) {
    const reference::RangeResult truth = reference::range_search(queries, base, {radius, Metric::l2});
    reference::RangeResult found{{0}, {}, {}};
    range_search(
        VectorFile(directory.path("queries.fbin")), VectorFile(directory.path("base.fbin")),
        [&](int64_t first, const RangeView& part) {
          EXPECT_EQ(first, static_cast<int64_t>(found.offsets.size()) - 1);
          const auto before = static_cast<int64_t>(found.ids.size());
          for (int64_t q = 1; q <= part.queries; ++q) found.offsets.push_back(before + part.offsets[q]);
          found.ids.insert(found.ids.end(), part.ids, part.ids + part.size());
          found.distances.insert(found.distances.end(), part.distances, part.distances + part.size());
        },
        {radius, Metric::l2}, on_cpu(2, 1 << 20));
    EXPECT_EQ(found.offsets, truth.offsets);
    EXPECT_EQ(found.ids, truth.ids);
    EXPECT_EQ(found.distances, truth.distances);
  }
}

TEST(RangeSearch, FilesNeedRoomForTheRowsOfOneQuery) {
  const testing::TemporaryDirectory directory;
  const auto base = make_floats(Shape::gaussian, 20000, 4, 1);
  write_vectors(directory.path("base.fbin"), base.view());
  write_vectors(directory.path("queries.fbin"), base.view().slice(0, 100));
  int64_t queries = 0;
  range_search(
      VectorFile(directory.path("queries.fbin")), VectorFile(directory.path("base.fbin")),
      [&](int64_t first, const RangeView& part) {  // two million rows in all
        EXPECT_EQ(first, queries);
        queries += part.queries;
        EXPECT_EQ(part.size(), part.queries * 20000);
      },
      {100, Metric::l2}, on_cpu(2, 8 << 20));
  EXPECT_EQ(queries, 100);
}

TEST(RangeSearch, MoreThanTheLimitHoldsIsAnErrorThatSaysSo) {
  const auto base = make_floats(Shape::gaussian, 20000, 4, 1);
  const auto queries = make_floats(Shape::gaussian, 200, 4, 2);
  const Resources tight = on_cpu(2, 16 << 20);  // four million results want 48 MB
  int64_t needed = 0;
  try {
    range_search(queries.view(), base.view(), {100, Metric::l2}, tight);
    FAIL();
  } catch (const OutOfMemory& error) {
    needed = error.bytes_needed();
    EXPECT_NE(std::string(error.what()).find("4000000 rows"), std::string::npos) << error.what();
  }
  EXPECT_EQ(range_search(queries.view(), base.view(), {100, Metric::l2}, on_cpu(2, needed)).size(), 4000000);
  EXPECT_EQ(range_search(queries.view(), base.view(), {0, Metric::l2}, tight).size(), 0);  // nothing is lost
}

}  // namespace
}  // namespace kith
