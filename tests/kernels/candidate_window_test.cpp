// The window must hold every neighbour, whatever the matrix units lose: products are computed here as badly as the
// bound allows for, each addition truncated, on data chosen to strain the bound.
#include "kernels/matrix/candidate_window.hpp"

#include "kernels/distance/canonical.hpp"
#include "kernels/rounded_operand.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

namespace kith {
namespace {

using reference::Shape;

constexpr int64_t kWindowRows = 400;

// One query against all rows, for several k; returns how many rows the last window leaves.
int64_t check_query(Metric metric, const float* query, const reference::Matrix<float>& base,
                    std::initializer_list<int64_t> ks) {
  const KeyKind kind = key_kind(metric);
  const int64_t cols = base.cols;
  std::vector<float> centre(static_cast<size_t>(cols), 0.0f);
  float largest = 0;
  if (has_differences(kind)) {
    for (int64_t c = 0; c < cols; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < kWindowRows; ++i) sum += base.row(i)[c];
      centre[static_cast<size_t>(c)] = static_cast<float>(sum / kWindowRows);
    }
  }
  for (int64_t i = 0; i < kWindowRows * cols; ++i) {
    largest = std::max(largest, std::abs(base.row(i / cols)[i % cols] - centre[static_cast<size_t>(i % cols)]));
  }
  if (kind == KeyKind::cosine) largest = 1;
  const float scale = operand_scale(largest);
  const auto factor = [&](const float* row) {
    return kind == KeyKind::cosine ? canonical_inverse_norm(canonical_squared_norm(row, cols)) : 1.0;
  };
  const RoundedOperand q(query, centre, factor(query), scale, cols);
  if (kind == KeyKind::cosine && q.squares == 0) return kWindowRows;  // never sure
  std::vector<float> values;
  std::vector<float> keys;
  OperandBounds rows = {0, 0};
  for (int64_t i = 0; i < kWindowRows; ++i) {
    const RoundedOperand x(base.row(i), centre, factor(base.row(i)), scale, cols);
    float term = kind == KeyKind::inner_product ? 0.0f : 0.5f * x.squares;
    if (kind == KeyKind::cosine && x.squares == 0) term = 0.5f * scale * scale;  // at distance 1
    values.push_back(term + truncated_product(q, x));
    keys.push_back(reference::canonical(metric, query, base.row(i), cols));
    rows = {std::max(rows.norm, x.bounds.norm), std::max(rows.residual, x.bounds.residual)};
  }
  std::vector<float> sorted = values;
  std::vector<float> sorted_keys = keys;
  std::sort(sorted.begin(), sorted.end());
  std::sort(sorted_keys.begin(), sorted_keys.end());
  const double product_scale = kind == KeyKind::inner_product ? double{scale} * double{scale} : double{scale};
  int64_t left = 0;
  for (const int64_t k : ks) {
    SCOPED_TRACE(::testing::Message() << "k " << k);
    const auto place = static_cast<size_t>(k - 1);
    const CandidateWindow window = candidate_window({kind, false, cols, product_scale},
                                                    {q.bounds, q.squares, 0, q.true_square}, rows, sorted[place]);
    if (!window.sure) return kWindowRows;
    EXPECT_LE(sorted_keys[place], window.key_limit);
    left = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      left += values[i] <= window.threshold ? 1 : 0;
      if (keys[i] <= sorted_keys[place]) {
        EXPECT_LE(values[i], window.threshold) << "row " << i << " with key " << keys[i];
      }
    }
    // The same rows by their radius.
    const CandidateWindow range =
        range_window({kind, false, cols, product_scale}, {q.bounds, q.squares, 0}, rows, sorted_keys[place]);
    EXPECT_TRUE(range.sure);
    for (size_t i = 0; i < values.size(); ++i) {
      if (keys[i] <= sorted_keys[place]) {
        EXPECT_LE(values[i], range.threshold) << "row " << i << " with key " << keys[i];
      }
    }
  }
  return left;
}

TEST(CandidateWindow, HoldsEveryNeighbour) {
  for (const Shape shape : reference::kAllShapes) {
    for (const int64_t cols : {1, 3, 64, 129, 784}) {
      const auto base = reference::make_floats(shape, kWindowRows, cols, 5);
      const auto queries = reference::make_floats(shape, 3, cols, 6);
      for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
        SCOPED_TRACE(::testing::Message() << shape << " " << cols << " " << name_of(metric));
        for (int64_t q = 0; q < queries.rows; ++q) check_query(metric, queries.row(q), base, {1, 10, 100});
        check_query(metric, base.row(17), base, {1, 10, 100});  // its own neighbour
      }
    }
  }
}

// A query whose distances to all rows are about the same is sure of few of them all the same.
TEST(CandidateWindow, HoldsFewRowsOfAFarQuery) {
  for (const int64_t cols : {8, 128}) {
    const auto base = reference::make_floats(Shape::gaussian, kWindowRows, cols, 5);
    for (const float away : {30.0f, 1000.0f}) {
      std::vector<float> query(base.row(3), base.row(3) + cols);
      for (float& value : query) value += away;
      for (const Metric metric : {Metric::l2, Metric::sqeuclidean}) {
        EXPECT_LT(check_query(metric, query.data(), base, {10}), 25) << cols << " " << away;
      }
    }
  }
}

// Rows that were at `before` and are at `after` now: no value may be above what their keys and their moves tell.
TEST(CandidateWindow, AMovedRowIsNoFartherThanItsKeyAndMoveTell) {
  constexpr int64_t kCols = 5;
  const std::vector<float> centre(kCols, 0.0f);
  for (const float unit : {1e-23f, 1e-22f, 1.0f, 1e18f}) {
    for (const float step : {0.0f, 1e-3f, 0.5f}) {
      auto queries = reference::make_floats(Shape::gaussian, 40, kCols, 11);
      auto before = reference::make_floats(Shape::gaussian, 40, kCols, 12);
      auto after = reference::make_floats(Shape::gaussian, 40, kCols, 13);
      float largest = 0;
      for (int64_t i = 0; i < 40 * kCols; ++i) {
        queries.row(0)[i] *= unit;
        before.row(0)[i] *= unit;
        after.row(0)[i] = before.row(0)[i] + step * unit * after.row(0)[i];
        largest = std::max(largest, std::abs(after.row(0)[i]));
      }
      const float scale = operand_scale(largest);
      for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product}) {
        SCOPED_TRACE(::testing::Message() << unit << " moved by " << step << ", " << name_of(metric));
        const bool product = metric == Metric::inner_product;
        for (int64_t i = 0; i < 40; ++i) {
          const RoundedOperand q(queries.row(i), centre, 1, scale, kCols);
          const RoundedOperand x(after.row(i), centre, 1, scale, kCols);
          const float value = (product ? 0.0f : 0.5f * x.squares) + truncated_product(q, x);
          const float key = reference::canonical(metric, queries.row(i), before.row(i), kCols);
          double moved = 0;
          for (int64_t c = 0; c < kCols; ++c) {
            moved = std::hypot(moved, double{after.row(i)[c]} - double{before.row(i)[c]});
          }
          const double all = product ? double{scale} * double{scale} : double{scale};
          const double most = value_after_move({key_kind(metric), false, kCols, all}, {q.bounds, q.squares, 0}, x.bounds,
                                               key, moved, scale);
          EXPECT_LE(value, most) << "row " << i << " with key " << key;
          if (unit == 1.0f && step == 0.0f) {
            EXPECT_GT(value + 0.01 * (q.squares + x.squares), most) << "the bound of row " << i << " says little";
          }
        }
      }
    }
  }
}

TEST(CandidateWindow, LeavesFewRowsOfOrdinaryData) {
  const auto base = reference::make_floats(Shape::gaussian, kWindowRows, 128, 7);
  const auto far = reference::make_floats(Shape::far_mean, kWindowRows, 128, 7);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    EXPECT_LE(check_query(metric, base.row(3), base, {10}), 15) << name_of(metric);
  }
  EXPECT_LE(check_query(Metric::l2, far.row(3), far, {10}), 15);
}

TEST(CandidateWindow, NothingIsSureOfWhatOverflows) {
  const QueryWindow query{{1.0f, 1e-4f}, 1.0, 0.0};
  const OperandBounds rows{1.0f, 1e-4f};
  EXPECT_TRUE(candidate_window({KeyKind::l2, false, 8, 1.0}, query, rows, 0.5).sure);
  EXPECT_FALSE(candidate_window({KeyKind::l2, false, 8, 1e-20}, query, rows, 0.5).sure);
  EXPECT_FALSE(
      candidate_window({KeyKind::l2, false, 8, 1.0}, query, rows, std::numeric_limits<double>::infinity()).sure);
  EXPECT_FALSE(candidate_window({KeyKind::l2, false, 8, 1.0}, query, {NAN, 0.0f}, 0.5).sure);
  EXPECT_TRUE(candidate_window({KeyKind::l2, false, kWindowMostHalfCols, 1.0}, query, rows, 0.5).sure);
  EXPECT_FALSE(candidate_window({KeyKind::l2, false, kWindowMostHalfCols + 1, 1.0}, query, rows, 0.5).sure);
  EXPECT_TRUE(candidate_window({KeyKind::l2, true, kWindowMostCols, 1.0}, query, rows, 0.5).sure);
  EXPECT_FALSE(candidate_window({KeyKind::l2, true, kWindowMostCols + 1, 1.0}, query, rows, 0.5).sure);
}

TEST(CandidateWindow, ARangeWithoutEndIsNotSureAndOneBelowZeroHoldsLittle) {
  const QueryWindow query{{1.0f, 1e-4f}, 1.0, 0.0};
  const OperandBounds rows{1.0f, 1e-4f};
  const WindowProblem problem{KeyKind::l2, false, 8, 1.0};
  EXPECT_FALSE(range_window(problem, query, rows, std::numeric_limits<double>::infinity()).sure);
  EXPECT_EQ(range_window(problem, query, rows, -1.0).threshold, range_window(problem, query, rows, 0.0).threshold);
  EXPECT_LT(range_window(problem, query, rows, 0.0).threshold, -0.499f);
}

TEST(CandidateWindow, BytesLeaveOnlyTies) {
  // 100 x 100 bytes apart: whole numbers, so the window reaches a little further than the rounding of the key.
  const QueryWindow query{{1000.0f, 0.0f}, 1e6, 0.0};
  const CandidateWindow window = candidate_window({KeyKind::l2, true, 128, 1.0}, query, {1000.0f, 0.0f}, 4000.0);
  EXPECT_TRUE(window.sure);
  EXPECT_GE(window.threshold, 4000.5f);
  EXPECT_LE(window.threshold, 4008.0f);
}

TEST(CandidateWindow, MeasuredOperandsGiveItsUnitAndWhetherItIsSure) {
  const BaseBounds base{3.0f, {20, 0.5f}, 0};  // values up to 3 are scaled by 4
  const QueryOperand query{{7, 0.25f}, 2.0f, 0, 49, -3};
  const MeasuredWindow distance = measured_window({KeyKind::l2, false, 5}, base, query);
  EXPECT_EQ(distance.problem.scale, 4);
  EXPECT_EQ(distance.problem.cols, 5);
  EXPECT_EQ(distance.query.query.norm, 7);
  EXPECT_EQ(distance.query.squared_norm, 49);
  EXPECT_EQ(distance.query.key_offset, -3);
  EXPECT_TRUE(distance.sure);
  EXPECT_EQ(measured_window({KeyKind::inner_product, false, 5}, base, query).problem.scale, 8);
  EXPECT_EQ(measured_window({KeyKind::squared_l2, true, 5}, base, query).problem.scale, 1);
  BaseBounds lost_row = base;
  lost_row.unsure = 1;
  EXPECT_FALSE(measured_window({KeyKind::l2, false, 5}, lost_row, query).sure);
  QueryOperand lost_query = query;
  lost_query.unsure = 1;
  EXPECT_FALSE(measured_window({KeyKind::l2, false, 5}, base, lost_query).sure);
}

}  // namespace
}  // namespace kith
