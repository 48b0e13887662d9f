#include "kernels/assign/centre_sums.hpp"

#include "kernels/forced_target.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

// Both ways, sorted by label and row by row, to sums that are not zero before.
template <typename Matrix>
void expect_plain_sums(const Matrix& rows, int64_t labels_end, bool weighted) {
  const int64_t count = rows.view().rows();
  const int64_t cols = rows.view().cols();
  std::vector<int32_t> labels(static_cast<size_t>(count));
  std::vector<float> weights(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    labels[static_cast<size_t>(i)] = static_cast<int32_t>((i * i + i / 7) % labels_end / 2 * 2);  // odd ones get none
    weights[static_cast<size_t>(i)] = 0.37f * static_cast<float>(i % 3);
  }
  const auto size = static_cast<size_t>(labels_end * cols);
  std::vector<double> expected(size, 0.1);
  std::vector<double> expected_weights(static_cast<size_t>(labels_end), 0.3);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = labels[static_cast<size_t>(i)];
    const double weight = weighted ? static_cast<double>(weights[static_cast<size_t>(i)]) : 1.0;
    for (int64_t c = 0; c < cols; ++c) {
      expected[static_cast<size_t>(label * cols + c)] += weight * static_cast<double>(rows.row(i)[c]);
    }
    expected_weights[static_cast<size_t>(label)] += weight;
  }
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    std::vector<double> sums(size, 0.1);
    std::vector<double> weight_sums(static_cast<size_t>(labels_end), 0.3);
    add_rows_cpu(rows.view(), labels.data(), weighted ? weights.data() : nullptr, sums.data(), weight_sums.data());
    EXPECT_EQ(sums, expected) << target << " " << count << " x " << cols << ", " << labels_end;
    EXPECT_EQ(weight_sums, expected_weights) << target << " " << count << " x " << cols << ", " << labels_end;
  }
}

TEST(AddRows, AddsEachRowToItsLabelInTheirOrder) {
  for (const bool weighted : {false, true}) {
    for (const int64_t cols : {1, 9, 16, 41, 130}) {
      for (const int64_t labels_end : {2, 4, 60, 300}) {
        expect_plain_sums(make_floats(Shape::mixed_norms, 200, cols, 3), labels_end, weighted);
      }
      expect_plain_sums(make_floats(Shape::mixed_norms, 2100, cols, 4), 5, weighted);
      expect_plain_sums(make_bytes(30, cols, 9), 4, weighted);
    }
  }
}

}  // namespace
}  // namespace kith
