// The window of rows of one or two columns holds every row that may be among the nearest: a model of the GPU's
// differences in f32 against canonical keys, on values of all sizes.
#include "kernels/matrix/narrow_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace kith {
namespace {

using Vector = std::vector<float>;

// As narrow_minima_cuda.cu computes it.
float value_of(KeyKind kind, const Vector& query, const Vector& row) {
  const auto unit = [&](const Vector& from, size_t col) {
    if (kind != KeyKind::cosine) return from[col];
    const double inverse =
        canonical_inverse_norm(canonical_squared_norm(from.data(), static_cast<int64_t>(from.size())));
    return static_cast<float>(from[col] * inverse);
  };
  const bool zero = std::all_of(row.begin(), row.end(), [](float value) { return value == 0; });
  float sum = kind == KeyKind::cosine && zero ? 1.0f : 0.0f;
  for (size_t col = 0; col < query.size(); ++col) {
    const float difference = unit(query, col) - unit(row, col);
    sum = std::fma(difference, difference, sum);
  }
  return sum;
}

float key_of(KeyKind kind, const Vector& query, const Vector& row) {
  return visit_kind(kind, [&](auto tag) {
    return canonical_pair<decltype(tag)::kind>(query.data(), row.data(), static_cast<int64_t>(query.size()));
  });
}

void expect_window_holds(KeyKind kind, const Vector& query, const std::vector<Vector>& rows, size_t k) {
  std::vector<float> values;
  std::vector<float> keys;
  for (const Vector& row : rows) {
    values.push_back(value_of(kind, query, row));
    keys.push_back(key_of(kind, query, row));
  }
  std::vector<float> sorted_values = values;
  std::vector<float> sorted_keys = keys;
  std::sort(sorted_values.begin(), sorted_values.end());
  std::sort(sorted_keys.begin(), sorted_keys.end());
  const CandidateWindow window = narrow_window(kind, static_cast<int64_t>(query.size()), sorted_values[k - 1]);
  ASSERT_TRUE(window.sure);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (keys[i] > sorted_keys[k - 1]) continue;  // ties with the k-th are to be found
    EXPECT_LE(values[i], window.threshold) << i;
    EXPECT_LE(keys[i], window.key_limit) << i;
  }
  // And says something: hardly more than that.
  const double most =
      sorted_values[k - 1] * 1.0001 + (kind == KeyKind::cosine ? 1e-6 * std::sqrt(sorted_values[k - 1]) : 0);
  EXPECT_LE(window.threshold, most + 1e-12);
}

TEST(NarrowWindow, HoldsAllThatMayBeNearest) {
  std::mt19937 random(1);
  for (const size_t cols : {1, 2, 3}) {
    for (const KeyKind kind : {KeyKind::l2, KeyKind::squared_l2, KeyKind::cosine}) {
      if (!is_narrow(kind, static_cast<int64_t>(cols))) continue;
      for (const double size : {1e-25, 1e-6, 1.0, 3000.0}) {
        for (const double far : {0.0, 1.0, 1e5}) {
          std::normal_distribution<double> normal(0, size);
          const auto vector = [&](double from) {
            Vector values;
            for (size_t col = 0; col < cols; ++col) values.push_back(static_cast<float>(from * size + normal(random)));
            return values;
          };
          std::vector<Vector> rows;
          for (int i = 0; i < 3000; ++i) rows.push_back(i % 50 == 7 ? Vector(cols, 0.0f) : vector(0));
          for (int i = 0; i < 20; ++i) {
            for (const size_t k : {1, 10, 100}) expect_window_holds(kind, vector(far), rows, k);
          }
        }
      }
    }
  }
}

TEST(NarrowWindow, SaysNothingBeyondFloats) {
  EXPECT_FALSE(narrow_window(KeyKind::l2, 2, HUGE_VAL).sure);
  EXPECT_FALSE(narrow_window(KeyKind::squared_l2, 1, 1e37).sure);
  EXPECT_TRUE(narrow_window(KeyKind::l2, 1, 0).sure);
  EXPECT_TRUE(is_narrow(KeyKind::cosine, 3) && is_narrow(KeyKind::l2, 2));
  EXPECT_FALSE(is_narrow(KeyKind::inner_product, 1) || is_narrow(KeyKind::l2, 3) || is_narrow(KeyKind::cosine, 4));
}

}  // namespace
}  // namespace kith
