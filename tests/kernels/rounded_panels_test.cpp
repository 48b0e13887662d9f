#include "kernels/product/rounded_panels.hpp"

#include "kernels/distance/error_bound.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

TEST(RoundedPanels, RoundingIsBounded) {
  for (const Shape shape : reference::kAllShapes) {
    for (const int64_t cols : {1, 3, 16, 37, 200}) {
      const auto rows = make_floats(shape, 20, cols, 1);
      for (int64_t i = 0; i < rows.rows; ++i) {
        const float* row = rows.row(i);
        std::vector<int8_t> bytes(static_cast<size_t>(rounded_words(cols) * 4 * 3), int8_t{0});
        const RoundedRow rounded = round_to_bytes(row, cols, 3, bytes.data());
        double squares = 0;
        double largest = 0;
        for (int64_t c = 0; c < cols; ++c) {
          const int8_t byte = bytes[static_cast<size_t>(c / 4 * 12 + c % 4)];
          const double left = static_cast<double>(row[c]) - static_cast<double>(rounded.scale) * byte;
          squares += left * left;
          largest = std::max(largest, std::abs(static_cast<double>(row[c])));
        }
        ASSERT_GE(rounded.residual, std::sqrt(squares)) << shape;
        // And not by much more than half a step a column, unless the row was too small to be rounded.
        const double half_steps = largest / 127 / 2 * std::sqrt(static_cast<double>(cols));
        if (largest > 1e-14) {
          ASSERT_LE(rounded.residual, 1.01 * half_steps) << shape;
        }
      }
    }
  }
}

class Recorder final : public PanelHits {
 public:
  void on_hit(int64_t query, int64_t panel, const float* values) override {
    for (int64_t j = 0; j < kRoundedPanelRows; ++j) found[{query, panel * kRoundedPanelRows + j}] = values[j];
  }
  std::map<std::pair<int64_t, int64_t>, float> found;
};

TEST(RoundedPanels, ValuesAreWithinTheBound) {
  if (!has_rounded_product()) GTEST_SKIP() << "this machine has no byte product";
  for (const int64_t cols : {1, 6, 64, 301}) {
    const auto queries = make_floats(Shape::gaussian, 11, cols, 2);
    const auto rows = make_floats(Shape::mixed_norms, 30, cols, 3);
    const int64_t words = rounded_words(cols);
    std::vector<int8_t> packed_rows(static_cast<size_t>(3 * kRoundedPanelRows * words * 4), int8_t{0});
    std::vector<int8_t> packed_queries(static_cast<size_t>(2 * kRoundedPanelQueries * words * 4), int8_t{0});
    std::vector<float> terms(36, INFINITY), scales(36, 0.0f), norms(3, 0.0f), residuals(3, 0.0f);
    for (int64_t i = 0; i < 30; ++i) {
      const int64_t panel = i / kRoundedPanelRows;
      const RoundedRow rounded =
          round_to_bytes(rows.row(i), cols, kRoundedPanelRows,
                         packed_rows.data() + panel * kRoundedPanelRows * words * 4 + i % kRoundedPanelRows * 4);
      const double norm = std::sqrt(canonical_squared_norm(rows.row(i), cols));
      const auto at = static_cast<size_t>(i);
      const auto p = static_cast<size_t>(panel);
      terms[at] = static_cast<float>(norm * norm);
      scales[at] = rounded.scale;
      norms[p] = std::max(norms[p], static_cast<float>(norm));
      residuals[p] = std::max(residuals[p], rounded.residual);
    }
    std::vector<float> limits(16, INFINITY), factors(16, 0.0f), zero(16, 0.0f);
    std::vector<RoundedRow> rounded_queries;
    for (int64_t q = 0; q < 11; ++q) {
      rounded_queries.push_back(round_to_bytes(queries.row(q), cols, kRoundedPanelQueries,
                                               packed_queries.data() +
                                                   q / kRoundedPanelQueries * kRoundedPanelQueries * words * 4 +
                                                   q % kRoundedPanelQueries * 4));
      factors[static_cast<size_t>(q)] = -2 * rounded_queries.back().scale;
    }
    Recorder recorder;
    scan_rounded_panels(
        {packed_queries.data(), 11, limits.data(), factors.data(), zero.data(), zero.data(), zero.data(), zero.data()},
        {packed_rows.data(), terms.data(), scales.data(), norms.data(), residuals.data(), cols}, 0, 3, recorder);
    for (int64_t q = 0; q < 11; ++q) {
      const double norm = std::sqrt(canonical_squared_norm(queries.row(q), cols));
      for (int64_t i = 0; i < 30; ++i) {
        const double product = reference::distance(Metric::inner_product, queries.row(q), rows.row(i), cols);
        const double truth = static_cast<double>(terms[static_cast<size_t>(i)]) - 2 * product;
        const RoundedRow& rounded = rounded_queries[static_cast<size_t>(q)];
        const auto p = static_cast<size_t>(i / kRoundedPanelRows);
        const double bound = 2.0 * (rounded.residual * norms[p] + (norm + rounded.residual) * residuals[p]) +
                             1e-6 * (norm + norms[p]) * (norm + norms[p]);
        ASSERT_TRUE(recorder.found.contains({q, i}));
        EXPECT_LE(std::abs((recorder.found[{q, i}]) - truth), bound) << q << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace kith
