// Whatever the matrix units lose, a row's nearest centre stays within the window of the one with the least value, and
// so do all that are equally near; and one centre far out leaves the others' windows as they were.
#include "kernels/assign/centre_window.hpp"

#include "kernels/rounded_operand.hpp"
#include "reference/brute_force.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

constexpr int64_t kWindowCentres = 60;
constexpr int64_t kRowsOfWindow = 40;

struct CentreWindowCase {
  KeyKind kind = KeyKind::squared_l2;
  OperandBounds typical = {0, 0};
  double candidates = 0;  // of a row, on average
  int64_t unsure = 0;
};

// Checks every row; `typical` as a share of the longest row's.
CentreWindowCase check_rows(KeyKind kind, const Matrix<float>& rows, const Matrix<float>& centres,
                            float typical_share) {
  const int64_t cols = rows.cols;
  const std::vector<float> origin(static_cast<size_t>(cols), 0.0f);
  float largest = 0;
  for (const float value : rows.values) largest = std::max(largest, std::abs(value));
  const float scale = operand_scale(largest);
  const WindowProblem problem{kind, false, cols, scale};
  std::vector<RoundedOperand> of_centres;
  OperandBounds most = {0, 0};
  for (int64_t c = 0; c < centres.rows; ++c) {
    of_centres.emplace_back(centres.row(c), origin, 1.0, scale, cols);
    const OperandBounds& bounds = of_centres.back().bounds;
    most = {std::max(most.norm, bounds.norm), std::max(most.residual, bounds.residual)};
  }
  CentreWindowCase result;
  for (int64_t i = 0; i < rows.rows; ++i) {
    const OperandBounds bounds = RoundedOperand(rows.row(i), origin, 1.0, scale, cols).bounds;
    result.typical = {std::max(result.typical.norm, bounds.norm * typical_share),
                      std::max(result.typical.residual, bounds.residual * typical_share)};
  }
  std::vector<CentreTerm> terms;
  for (const RoundedOperand& centre : of_centres) {
    terms.push_back(lowered_term(cols, 0.5f * centre.squares, centre.bounds, result.typical));
  }
  for (int64_t i = 0; i < rows.rows; ++i) {
    const RoundedOperand row(rows.row(i), origin, 1.0, scale, cols);
    const double excess = row_excess(cols, row.bounds, result.typical, most);
    std::vector<float> values;
    std::vector<float> keys;
    for (int64_t c = 0; c < centres.rows; ++c) {
      values.push_back(terms[static_cast<size_t>(c)].term + truncated_product(row, of_centres[static_cast<size_t>(c)]));
      keys.push_back(reference::canonical(kind == KeyKind::l2 ? Metric::l2 : Metric::sqeuclidean, rows.row(i),
                                          centres.row(c), cols));
    }
    const auto best = static_cast<size_t>(std::min_element(values.begin(), values.end()) - values.begin());
    const CandidateWindow window = centre_window(problem, row.bounds, excess, values[best], terms[best].width);
    result.unsure += window.sure ? 0 : 1;
    if (!window.sure) continue;
    const float nearest = *std::min_element(keys.begin(), keys.end());
    const double slack = row_slack(problem, row.bounds, excess, result.typical, most);
    const QueryOperand query{row.bounds, scale, 0, static_cast<double>(row.squares), 0.0};
    for (size_t c = 0; c < keys.size(); ++c) {
      result.candidates += values[c] <= window.threshold ? 1.0 / static_cast<double>(rows.rows) : 0.0;
      if (keys[c] != nearest) continue;
      EXPECT_LE(values[c], window.threshold) << "row " << i << ", centre " << c;
      EXPECT_LE(values[c], values[best] + (static_cast<float>(slack) + terms[best].width)) << "row " << i;
      if (kind != KeyKind::squared_l2) continue;
      for (size_t guess = 0; guess < keys.size(); ++guess) {  // any centre's key bounds the nearest, moved or not
        const float limit = limit_after_move(problem, query, excess, most, keys[guess], 0);
        EXPECT_FALSE(limit < values[c]) << "row " << i;  // what is not a number limits nothing
      }
    }
  }
  return result;
}

TEST(CentreWindow, HoldsTheNearestCentres) {
  for (const KeyKind kind : {KeyKind::squared_l2, KeyKind::l2}) {
    for (const Shape shape : reference::kAllShapes) {
      for (const int64_t cols : {1, 3, 17, 300}) {
        SCOPED_TRACE(::testing::Message() << "shape " << static_cast<int>(shape) << ", " << cols << " columns");
        const auto rows = make_floats(shape, kRowsOfWindow, cols, 1);
        auto centres = make_floats(shape, kWindowCentres, cols, 2);
        std::copy_n(centres.row(0), cols, centres.row(7));  // equally near
        std::copy_n(rows.row(3), cols, centres.row(9));     // on a row
        for (const float share : {1.0f, 0.5f, 0.0f}) check_rows(kind, rows, centres, share);
      }
    }
  }
}

TEST(CentreWindow, OneCentreFarOutWidensNoOther) {
  const auto rows = make_floats(Shape::gaussian, kRowsOfWindow, 300, 3);
  auto centres = make_floats(Shape::gaussian, kWindowCentres, 300, 4);
  for (float& value : centres.values) value *= 0.1f;
  const double before = check_rows(KeyKind::squared_l2, rows, centres, 1.0f).candidates;
  for (int64_t c = 0; c < 300; ++c) centres.row(5)[c] *= 50;
  const CentreWindowCase after = check_rows(KeyKind::squared_l2, rows, centres, 1.0f);
  EXPECT_EQ(after.unsure, 0);
  EXPECT_LE(after.candidates, before + 0.1);
}

TEST(CentreWindow, SaysNothingOfWhatIsNotFinite) {
  const WindowProblem problem{KeyKind::squared_l2, false, 8, 1.0};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(centre_window(problem, {1, 0.01f}, 0, 0.5f, 0.1f).sure);
  EXPECT_FALSE(centre_window(problem, {1, 0.01f}, 0, nan, 0.1f).sure);
  EXPECT_FALSE(centre_window(problem, {1e30f, 0.01f}, 0, 0.5f, 0.1f).sure);
  EXPECT_FALSE(centre_window(problem, {1, 0.01f}, 0, 0.5f, std::numeric_limits<float>::infinity()).sure);
}

}  // namespace
}  // namespace kith
