// Searches that look at rounded rows first: the answers are those of a search without, whatever the rounding hides.
#include <kith/index.hpp>

#include "core/cpu_target.hpp"
#include "exact/exact_check.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

constexpr Metric kMetrics[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine};

// One column is so much larger than the others that rounding leaves nothing of them.
Matrix<float> hidden_differences(int64_t rows, int64_t cols, uint64_t seed) {
  Matrix<float> m = make_floats(Shape::gaussian, rows, cols, seed);
  for (int64_t r = 0; r < rows; ++r) {
    float* const row = m.values.data() + r * cols;
    for (int64_t c = 0; c < cols; ++c) row[c] *= 0.01f;
    row[r % cols] = r % 2 == 0 ? 1000.0f : -1000.0f;
  }
  return m;
}

TEST(Screen, HardDataStaysExact) {
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    SCOPED_TRACE(target);
    for (const Shape shape : reference::kAllShapes) {
      SCOPED_TRACE(shape);
      for (const Metric metric : kMetrics) {
        check(make_floats(shape, 50, 37, 1), make_floats(shape, 400, 37, 2), {9, metric});
      }
    }
  }
}

TEST(Screen, IsLeftOutWhereItRulesNothingOut) {
  const auto base = hidden_differences(3000, 40, 1);
  const auto queries = hidden_differences(60, 40, 2);
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    SCOPED_TRACE(target);
    for (const Metric metric : kMetrics) check(queries, base, {5, metric});
  }
}

TEST(Screen, OfAPreparedBaseServesAnyNumberOfQueries) {
  const auto base = make_floats(Shape::gaussian, 1000, 64, 3);
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    SCOPED_TRACE(target);
    for (const Metric metric : kMetrics) {
      IndexParams params;
      params.metric = metric;
      Index index("Flat", params);
      index.add(base.view(), Ownership::borrow, on_cpu());
      for (const int64_t count : {1, 2, 3, 4, 8, 9, 11, 17, 70}) {
        SCOPED_TRACE(count);
        const auto queries = make_floats(Shape::gaussian, count, 64, 4);
        expect_same(index.search(queries.view(), 10, on_cpu()), reference::knn(queries, base, {10, metric}));
      }
    }
  }
}

}  // namespace
}  // namespace kith
