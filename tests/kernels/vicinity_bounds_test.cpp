// What a leader tells of the neighbours of a query near it, against all rows.
#include "kernels/matrix/vicinity_bounds.hpp"
#include "kernels/distance/canonical.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

double norm_of(const float* row, int64_t cols) {
  double squares = 0;
  for (int64_t i = 0; i < cols; ++i) squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  return std::sqrt(squares);
}

TEST(VicinityBounds, HoldTheNeighboursOfEveryQuery) {
  constexpr int64_t kRows = 200;
  for (const reference::Shape shape : reference::kAllShapes) {
    for (const int64_t cols : {1, 7, 64}) {
      const auto base = reference::make_floats(shape, kRows, cols, 5);
      const auto queries = reference::make_floats(shape, 6, cols, 6);
      double longest = 0;
      for (int64_t i = 0; i < kRows; ++i) longest = std::max(longest, norm_of(base.row(i), cols) * (1 + 0x1p-30));
      for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::cosine, Metric::inner_product}) {
        const KeyKind kind = key_kind(metric);
        const Metric between = metric == Metric::inner_product ? Metric::l2 : metric;
        const double factor = metric == Metric::inner_product ? longest : 1.0;
        const auto key = [&](const float* q, const float* x) { return reference::canonical(metric, q, x, cols); };
        for (int64_t leader = 0; leader < queries.rows; ++leader) {
          for (int64_t q = 0; q < queries.rows; ++q) {
            const float apart = reference::canonical(between, queries.row(leader), queries.row(q), cols);
            for (int64_t limit_row = 0; limit_row < kRows; limit_row += 37) {
              const float limit = key(queries.row(q), base.row(limit_row));
              const double radius =
                  factor * distance_of_key(kind_between_queries(kind), apart) + reach_of_limit(kind, limit);
              const float most = key_within(kind, radius);
              for (int64_t i = 0; i < kRows; ++i) {
                if (!(key(queries.row(q), base.row(i)) <= limit)) continue;
                EXPECT_FALSE(key(queries.row(leader), base.row(i)) > most)
                    << name_of(metric) << " " << shape << ", " << cols << " columns, row " << i;
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kith
