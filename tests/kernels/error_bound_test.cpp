// The bounds must hold for every pair, on data chosen to strain them: sums of equal signs, large offsets, mixed scales.
#include "kernels/distance/error_bound.hpp"

#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/distance/stored_row.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kith {
namespace {

using reference::Shape;

constexpr Shape kFinite[] = {Shape::gaussian, Shape::far_mean, Shape::near_duplicates, Shape::all_equal,
                             Shape::sorted,   Shape::reversed, Shape::with_zeros,      Shape::mixed_norms};

// The sum in f32, one after the other: the order that loses most.
float plain_product(const float* q, const float* x, int64_t cols, float start, float scale) {
  float sum = start;
  for (int64_t i = 0; i < cols; ++i) sum += (q[i] * scale) * x[i];
  return sum;
}

// Calls check(query, row, cols) for pairs of every kind of data and several widths.
template <typename Check>
void for_pairs(const Check& check) {
  for (const Shape shape : kFinite) {
    for (const int64_t cols : {1, 7, 128, 1000}) {
      SCOPED_TRACE(testing::Message() << shape << " " << cols);
      const auto queries = reference::make_floats(shape, 8, cols, 3);
      const auto base = reference::make_floats(shape, 64, cols, 4);
      for (int64_t q = 0; q < queries.rows; ++q) {
        for (int64_t i = 0; i < base.rows; ++i) check(queries.row(q), base.row(i), cols);
      }
    }
  }
}

TEST(ErrorBound, HoldsForSquaredDistancesFromProducts) {
  for_pairs([](const float* q, const float* x, int64_t cols) {
    const double qq = canonical_squared_norm(q, cols);
    const double xx = canonical_squared_norm(x, cols);
    const float key = plain_product(q, x, cols, static_cast<float>(xx), -2.0f) + static_cast<float>(qq);
    const float truth = reference::canonical(Metric::sqeuclidean, q, x, cols);
    const ErrorBound bound = squared_l2_product_bound(std::sqrt(qq), cols);
    EXPECT_LE(std::abs(key - truth), bound.at(static_cast<float>(std::sqrt(xx))));
  });
}

TEST(ErrorBound, HoldsForInnerProducts) {
  for_pairs([](const float* q, const float* x, int64_t cols) {
    const float key = plain_product(q, x, cols, 0.0f, -1.0f);
    const float truth = reference::canonical(Metric::inner_product, q, x, cols);
    const ErrorBound bound = inner_product_bound(std::sqrt(canonical_squared_norm(q, cols)), cols);
    EXPECT_LE(std::abs(key - truth), bound.at(static_cast<float>(std::sqrt(canonical_squared_norm(x, cols)))));
  });
}

TEST(ErrorBound, HoldsForDirectSums) {
  for (const Shape shape : reference::kAllShapes) {
    if (shape == Shape::huge) continue;  // overflows: handled as unknown
    for (const int64_t cols : {1, 7, 128, 1000}) {
      const auto query = reference::make_floats(shape, 1, cols, 3);
      const auto base = reference::make_floats(shape, 64, cols, 4);
      std::vector<float> values(64);
      scan_rows_cpu(KeyKind::squared_l2, query.row(0), base.view(), values.data(), nullptr);
      for (int64_t i = 0; i < base.rows; ++i) {
        const float truth = reference::canonical(Metric::sqeuclidean, query.row(0), base.row(i), cols);
        const double most = values[static_cast<size_t>(i)] * product_error(cols) + underflow_error(cols);
        ASSERT_LE(std::abs(values[static_cast<size_t>(i)] - truth), most) << shape << " " << cols;
      }
    }
  }
}

}  // namespace
}  // namespace kith
