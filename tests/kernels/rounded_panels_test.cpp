#include "kernels/panels/rounded_panels.hpp"
#include "kernels/panels/panel_packing.hpp"

#include <kith/host_buffer.hpp>

#include "kernels/distance/error_bound.hpp"
#include "kernels/forced_target.hpp"
#include "kernels/panels/panel_format.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

void expect_rounding_is_bounded(const float* row, int64_t cols) {
  std::vector<int8_t> bytes(static_cast<size_t>(rounded_words(cols) * 4 * 3), int8_t{0});
  std::vector<int8_t> flipped(bytes.size(), int8_t{0});
  const RoundedVector rounded = round_row(row, cols, 3, bytes.data());
  round_row(row, cols, 3, flipped.data(), 128);
  double squares = 0;
  double largest = 0;
  int32_t sum = 0;
  for (int64_t c = 0; c < cols; ++c) {
    const auto at = static_cast<size_t>(c / 4 * 12 + c % 4);
    const int8_t byte = bytes[at];
    ASSERT_EQ(static_cast<uint8_t>(flipped[at]), byte + 128);
    const double left = static_cast<double>(row[c]) - static_cast<double>(rounded.scale) * byte;
    squares += left * left;
    largest = std::max(largest, std::abs(static_cast<double>(row[c])));
    sum += byte;
  }
  EXPECT_EQ(rounded.sum, sum);
  ASSERT_GE(rounded.residual, std::sqrt(squares));
  // And not by much more than half a step a column, unless the row was too small to be rounded.
  const double half_steps = largest / 127 / 2 * std::sqrt(static_cast<double>(cols));
  if (largest > 1e-14) {
    ASSERT_LE(rounded.residual, 1.01 * half_steps);
  }
}

TEST(RoundedPanels, RoundingIsBounded) {
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    for (const Shape shape : reference::kAllShapes) {
      for (const int64_t cols : {1, 3, 16, 37, 200}) {
        SCOPED_TRACE(::testing::Message() << target << " " << shape << " " << cols);
        const auto rows = make_floats(shape, 20, cols, 1);
        for (int64_t i = 0; i < rows.rows; ++i) expect_rounding_is_bounded(rows.row(i), cols);
      }
    }
    // The largest sums that there are.
    const std::vector<float> all_equal(static_cast<size_t>(kMostRoundedColumns), -3.5f);
    expect_rounding_is_bounded(all_equal.data(), kMostRoundedColumns);
  }
}

class ValueRecorder final : public PanelHits {
 public:
  explicit ValueRecorder(int64_t rows_per_panel) : width(rows_per_panel) {}
  void on_hit(int64_t query, int64_t panel, const float* values) override {
    for (int64_t j = 0; j < width; ++j) found[{query, panel * width + j}] = values[j];
  }
  const int64_t width;
  std::map<std::pair<int64_t, int64_t>, float> found;
};

void expect_within_the_bound(int64_t cols) {
  constexpr int64_t kRows = 100;
  constexpr int64_t kQueries = 11;
  const auto queries = make_floats(Shape::gaussian, kQueries, cols, 2);
  const auto rows = make_floats(Shape::mixed_norms, kRows, cols, 3);
  const PanelShape shape = panel_shape(PanelFormat::rounded);
  const int64_t width = shape.rows_per_panel;
  const int64_t panels = (kRows + width - 1) / width;
  const int64_t bytes = rounded_words(cols) * 4;
  const HostBuffer packed_rows(panels * width * bytes, "rows", Resources());
  const HostBuffer packed_queries(2 * shape.queries_per_panel * bytes, "queries", Resources());
  std::fill_n(packed_rows.as<int8_t>(), panels * width * bytes, int8_t{0});
  std::fill_n(packed_queries.as<int8_t>(), 2 * shape.queries_per_panel * bytes, int8_t{0});
  const auto padded = static_cast<size_t>(panels * width);
  std::vector<float> terms(padded, INFINITY), scales(padded, 0.0f);
  std::vector<int32_t> sums(padded, 0);
  std::vector<float> norms(static_cast<size_t>(panels), 0.0f), residuals(static_cast<size_t>(panels), 0.0f);
  for (int64_t i = 0; i < kRows; ++i) {
    const int64_t panel = i / width;
    const RoundedVector rounded =
        round_row(rows.row(i), cols, width, packed_rows.as<int8_t>() + panel * width * bytes + i % width * 4);
    const double norm = std::sqrt(canonical_squared_norm(rows.row(i), cols));
    const auto at = static_cast<size_t>(i);
    const auto p = static_cast<size_t>(panel);
    terms[at] = static_cast<float>(norm * norm);
    scales[at] = rounded.scale;
    sums[at] = rounded.sum;
    norms[p] = std::max(norms[p], static_cast<float>(norm));
    residuals[p] = std::max(residuals[p], rounded.residual);
  }
  std::vector<float> limits(16, INFINITY), factors(16, 0.0f), zero(16, 0.0f);
  std::vector<RoundedVector> rounded_queries;
  for (int64_t q = 0; q < kQueries; ++q) {
    const int64_t within = q % shape.queries_per_panel;
    rounded_queries.push_back(round_query(queries.row(q), cols, shape.queries_per_panel,
                                          packed_queries.as<int8_t>() + (q - within) * bytes + within * 4));
    factors[static_cast<size_t>(q)] = -2 * rounded_queries.back().scale;
  }
  ValueRecorder recorder(width);
  scan_rounded_panels(
      {packed_queries.as<int8_t>(), kQueries, limits.data(), factors.data(), zero.data(), zero.data(), zero.data(),
       zero.data()},
      {packed_rows.as<int8_t>(), terms.data(), scales.data(), sums.data(), norms.data(), residuals.data(), cols}, 0,
      panels, recorder);
  for (int64_t q = 0; q < kQueries; ++q) {
    const double norm = std::sqrt(canonical_squared_norm(queries.row(q), cols));
    for (int64_t i = 0; i < kRows; ++i) {
      const double product = reference::distance(Metric::inner_product, queries.row(q), rows.row(i), cols);
      const double truth = static_cast<double>(terms[static_cast<size_t>(i)]) - 2 * product;
      const RoundedVector& rounded = rounded_queries[static_cast<size_t>(q)];
      const auto p = static_cast<size_t>(i / width);
      const double bound = 2.0 * (rounded.residual * norms[p] + (norm + rounded.residual) * residuals[p]) +
                           1e-6 * (norm + norms[p]) * (norm + norms[p]);
      ASSERT_TRUE(recorder.found.contains({q, i}));
      EXPECT_LE(std::abs((recorder.found[{q, i}]) - truth), bound) << q << " " << i;
    }
  }
}

TEST(RoundedPanels, ValuesAreWithinTheBound) {
  int tried = 0;
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    if (!has_rounded_product(cpu_extensions())) continue;
    SCOPED_TRACE(target);
    for (const int64_t cols : {int64_t{1}, int64_t{6}, int64_t{64}, int64_t{301}, kMostRoundedColumns}) {
      expect_within_the_bound(cols);
    }
    ++tried;
  }
  if (tried == 0) GTEST_SKIP() << "this machine has no product of bytes";
}

}  // namespace
}  // namespace kith
