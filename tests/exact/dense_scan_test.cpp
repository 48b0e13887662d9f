// Searches whose bounds rule out little, so that the keys of whole blocks are computed: the results stay.
#include <kith/index.hpp>

#include "exact/exact_check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

constexpr int64_t kRows = 2300;  // several stretches of panels
constexpr int64_t kQueries = 11;

// Some queries are hard, the others are not.
Matrix<float> mixed_queries(Shape shape, int64_t cols) {
  auto queries = make_floats(Shape::gaussian, kQueries, cols, 1);
  const auto hard = make_floats(shape, kQueries, cols, 2);
  for (int64_t q = 0; q < kQueries; q += 2) std::copy_n(hard.row(q), cols, queries.row(q));
  return queries;
}

TEST(DenseScan, FindsWhatTheReferenceFinds) {
  for (const Shape shape :
       {Shape::all_equal, Shape::near_duplicates, Shape::mixed_norms, Shape::huge, Shape::tiny, Shape::with_zeros}) {
    SCOPED_TRACE(shape);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
      SCOPED_TRACE(name_of(metric));
      const auto base = make_floats(shape, kRows, 21, 3);
      check_with_every_target(mixed_queries(shape, 21), base, {5, metric});
      check(mixed_queries(shape, 21), base, {90, metric}, on_cpu(3));
    }
  }
}

// Equal rows begin and end in the middle, so that a query changes its way more than once.
TEST(DenseScan, TakesTurnsWithProducts) {
  auto base = make_floats(Shape::gaussian, 3 * kRows, 12, 4);
  for (int64_t i = 700; i < 2900; ++i) std::copy_n(base.row(700), 12, base.row(i));
  for (int64_t i = 4100; i < 5000; ++i) std::copy_n(base.row(4100), 12, base.row(i));
  auto queries = make_floats(Shape::gaussian, kQueries, 12, 5);
  for (int64_t c = 0; c < 12; ++c) queries.row(3)[c] = base.row(700)[c] + 0.01f;
  std::copy_n(base.row(4100), 12, queries.row(5));
  for (const int threads : {1, 2}) {
    check(queries, base, {10, Metric::l2}, on_cpu(threads));
    check(queries, base, {3000, Metric::sqeuclidean}, on_cpu(threads));
  }
}

// Enough queries, rows and columns for a screen of rounded bytes: rows are tested by their own norms, scaled where
// their squares leave f32's range, left out where they equal k before them, and compared one by one where they lie
// close.
TEST(DenseScan, BehindAScreen) {
  constexpr int64_t kCols = 72;
  constexpr int64_t kMany = 96;
  for (const Shape shape :
       {Shape::all_equal, Shape::near_duplicates, Shape::mixed_norms, Shape::huge, Shape::tiny, Shape::far_mean}) {
    SCOPED_TRACE(shape);
    const auto base = make_floats(shape, kRows, kCols, 10);
    auto queries = make_floats(shape, kMany, kCols, 11);
    for (int64_t q = 0; q < kMany; q += 3) std::copy_n(base.row(q * 7), kCols, queries.row(q));
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
      SCOPED_TRACE(name_of(metric));
      check_with_every_target(queries, base, {5, metric});
    }
  }
}

TEST(DenseScan, RowsThatEqualKBeforeThem) {
  constexpr int64_t kCols = 40;
  constexpr int64_t kMany = 160;
  auto base = make_floats(Shape::gaussian, 3 * kRows, kCols, 12);
  for (int64_t i = 0; i < 3 * kRows; ++i) {
    if (i % 3 != 0) std::copy_n(base.row(i % 2 == 0 ? 0 : 3 * (i % 17)), kCols, base.row(i));
  }
  auto queries = make_floats(Shape::gaussian, kMany, kCols, 13);
  for (int64_t q = 0; q < kMany; q += 2) std::copy_n(base.row(q), kCols, queries.row(q));
  std::vector<uint8_t> keep(static_cast<size_t>(3 * kRows), 1);
  for (int64_t i = 0; i < 3 * kRows; ++i) keep[static_cast<size_t>(i)] = i >= 100 && i % 4 != 0;
  for (const int64_t k : {1, 10, 100}) {
    check(queries, base, {k, Metric::l2}, on_cpu(3));
    check(queries, base, {k, Metric::l2, true, RowFilter::mask(keep.data(), 3 * kRows)}, on_cpu(1));
  }
}

TEST(DenseScan, LeavesOutWhatAFilterDoesAndKeepsNanLast) {
  const auto base = make_floats(Shape::all_equal, kRows, 7, 6);
  std::vector<uint8_t> keep(static_cast<size_t>(kRows), 1);
  for (int64_t i = 0; i < kRows; i += 5) keep[static_cast<size_t>(i)] = 0;
  check(mixed_queries(Shape::all_equal, 7), base, {30, Metric::l2, true, RowFilter::mask(keep.data(), kRows)});

  auto broken = make_floats(Shape::huge, kRows, 7, 7);
  for (int64_t i = 0; i < kRows; i += 3) broken.row(i)[i % 7] = i % 2 == 0 ? NAN : INFINITY;
  Index index("Flat", {Metric::sqeuclidean, false});
  index.add(broken.view(), Ownership::borrow, on_cpu());
  const KnnParams params{kRows, Metric::sqeuclidean, false};
  const auto queries = mixed_queries(Shape::huge, 7);
  const reference::Result truth = reference::knn(queries, broken, params);
  const Neighbors found = index.search(queries.view(), {kRows}, on_cpu());
  for (int64_t i = 0; i < kQueries * kRows; ++i) ASSERT_EQ(found.ids(0)[i], truth.ids[static_cast<size_t>(i)]) << i;
}

TEST(DenseScan, TakesAllThatIsInRange) {
  const auto base = make_floats(Shape::gaussian, kRows, 15, 8);
  const auto queries = make_floats(Shape::gaussian, kQueries, 15, 9);
  Index index("Flat", {Metric::l2});
  index.add(base.view(), Ownership::borrow, on_cpu());
  std::vector<uint8_t> keep(static_cast<size_t>(kRows), 1);
  for (int64_t i = 0; i < kRows; i += 2) keep[static_cast<size_t>(i)] = 0;
  for (const float radius : {5.5f, 1000.0f, INFINITY}) {
    for (const RowFilter& filter : {RowFilter(), RowFilter::mask(keep.data(), kRows)}) {
      const reference::RangeResult truth = reference::range_search(queries, base, {radius, Metric::l2, true, filter});
      for (const int threads : {1, 3}) {
        const RangeNeighbors found = index.range_search(queries.view(), {radius, filter}, on_cpu(threads));
        const RangeView view = found.view();
        ASSERT_EQ(std::vector<int64_t>(view.offsets, view.offsets + kQueries + 1), truth.offsets);
        ASSERT_EQ(std::vector<int64_t>(view.ids, view.ids + view.size()), truth.ids);
        ASSERT_EQ(std::vector<float>(view.distances, view.distances + view.size()), truth.distances);
      }
    }
  }
}

}  // namespace
}  // namespace kith
