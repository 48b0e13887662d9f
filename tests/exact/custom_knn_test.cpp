#include <kith/custom_metric.hpp>

#include <kith/error.hpp>

#include "exact/exact_check.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using reference::stored_as;

// Squares of differences, weighted by the column, so that the order of columns matters to the result.
struct Weighted {
  float weight;

  float init() const { return 0; }
  float step(float sum, float q, float x) const { return sum * 0.5f + weight * (q - x) * (q - x); }
  float finish(float sum) const { return std::sqrt(sum); }
};

float plainly(const Weighted& metric, const float* q, const float* x, int64_t cols) {
  float sum = metric.init();
  for (int64_t c = 0; c < cols; ++c) sum = metric.step(sum, q[c], x[c]);
  return metric.finish(sum);
}

void check_custom(const reference::Matrix<float>& queries, const reference::Matrix<float>& base, int64_t k,
                  const Resources& resources, const RowFilter& filter = {}) {
  const Weighted metric{3.0f};
  const Neighbors found = knn_by(metric, queries.view(), base.view(), {.k = k, .filter = filter}, resources);
  const std::vector<uint32_t> rows = reference::kept_rows(filter, base.rows);
  for (int64_t q = 0; q < queries.rows; ++q) {
    std::vector<uint64_t> all;
    for (const uint32_t i : rows) {
      all.push_back(pack_neighbor(ordered_key(plainly(metric, queries.row(q), base.row(i), base.cols)), i));
    }
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < k; ++i) {
      const bool real = i < static_cast<int64_t>(all.size());
      ASSERT_EQ(found.ids(q)[i], real ? static_cast<int64_t>(row_of(all[static_cast<size_t>(i)])) : -1);
      const float distance = real ? key_of_ordered(ordered_of(all[static_cast<size_t>(i)])) : INFINITY;
      ASSERT_EQ(found.distances(q)[i], distance);
    }
  }
}

TEST(CustomKnn, FindsTheNearestByTheGivenMetric) {
  for (const Shape shape : {Shape::gaussian, Shape::all_equal, Shape::sorted, Shape::reversed}) {
    for (const int64_t rows : {1, 15, 16, 17, 1000}) {
      for (const int64_t queries : {1, 63, 65}) {
        SCOPED_TRACE(::testing::Message() << shape << " " << queries << " in " << rows);
        check_custom(make_floats(shape, queries, 5, 2), make_floats(shape, rows, 5, 1), 20, on_cpu());
      }
    }
  }
}

TEST(CustomKnn, ThreadsAndSplitsChangeNothing) {
  const auto base = make_floats(Shape::near_duplicates, 40000, 3, 1);
  const auto queries = make_floats(Shape::near_duplicates, 2, 3, 2);
  check_custom(queries, base, 700, on_cpu(1));
  check_custom(queries, base, 700, on_cpu(4));
}

TEST(CustomKnn, TakesFiltersAndEveryDtype) {
  auto base = make_floats(Shape::gaussian, 300, 4, 1);
  const auto queries = make_floats(Shape::gaussian, 9, 4, 2);
  const int64_t ids[] = {290, 3, 3, 77};
  check_custom(queries, base, 5, on_cpu(), RowFilter::rows(ids, 4));
  check_custom(queries, base, 5, on_cpu(), RowFilter::rows(ids, 0));
  base.row(5)[1] = NAN;  // left out, so nobody minds
  check_custom(queries, base, 5, on_cpu(), RowFilter::rows(ids, 4));
  EXPECT_THROW(knn_by(Weighted{1}, queries.view(), base.view(), {}, on_cpu()), InvalidArgument);

  const auto halves = stored_as<Half>(queries);
  const Neighbors found = knn_by(Weighted{1}, halves.view(), halves.view(), {.k = 1}, on_cpu());
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(found.ids(i)[0], i);
}

TEST(CustomKnn, RefusesWhatItCannotDo) {
  const auto x = make_floats(Shape::gaussian, 5, 4, 1);
  const auto y = make_floats(Shape::gaussian, 5, 3, 1);
  EXPECT_THROW(knn_by(Weighted{1}, x.view(), y.view(), {}, on_cpu()), InvalidArgument);
  EXPECT_THROW(knn_by(Weighted{1}, x.view(), x.view(), {.k = 0}, on_cpu()), InvalidArgument);
  EXPECT_THROW(knn_by(Weighted{1}, x.view(), x.view(), {.k = 3}, on_cpu(2, 1000)), OutOfMemory);
}

}  // namespace
}  // namespace kith
