// The bounds must hold for every pair, on data chosen to strain them: sums of equal signs, large offsets, mixed scales.
#include "kernels/distance/error_bound.hpp"

#include "kernels/distance/distance_cpu.hpp"
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

TEST(ErrorBound, HoldsForProductsOfCentredRows) {
  for (const Shape shape : kFinite) {
    for (const int64_t cols : {1, 7, 128, 1000}) {
      const auto queries = reference::make_floats(shape, 8, cols, 3);
      const auto base = reference::make_floats(shape, 64, cols, 4);
      for (int64_t q = 0; q < queries.rows; ++q) {
        const double qq = canonical_squared_norm(queries.row(q), cols);
        const ErrorBound bound = squared_l2_product_bound(std::sqrt(qq), cols);
        for (int64_t i = 0; i < base.rows; ++i) {
          const double xx = canonical_squared_norm(base.row(i), cols);
          const float value = plain_product(queries.row(q), base.row(i), cols, static_cast<float>(xx), -2.0f);
          const float key = value + static_cast<float>(qq);
          const float truth = reference::canonical(Metric::sqeuclidean, queries.row(q), base.row(i), cols);
          ASSERT_LE(std::abs(key - truth), bound.at(static_cast<float>(std::sqrt(xx)))) << shape << " " << cols;
        }
      }
    }
  }
}

TEST(ErrorBound, HoldsForInnerProducts) {
  for (const Shape shape : kFinite) {
    for (const int64_t cols : {1, 7, 128, 1000}) {
      const auto queries = reference::make_floats(shape, 8, cols, 3);
      const auto base = reference::make_floats(shape, 64, cols, 4);
      for (int64_t q = 0; q < queries.rows; ++q) {
        const ErrorBound bound = inner_product_bound(std::sqrt(canonical_squared_norm(queries.row(q), cols)), cols);
        for (int64_t i = 0; i < base.rows; ++i) {
          const float key = plain_product(queries.row(q), base.row(i), cols, 0.0f, -1.0f);
          const float truth = reference::canonical(Metric::inner_product, queries.row(q), base.row(i), cols);
          const auto norm = static_cast<float>(std::sqrt(canonical_squared_norm(base.row(i), cols)));
          ASSERT_LE(std::abs(key - truth), bound.at(norm)) << shape << " " << cols;
        }
      }
    }
  }
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
