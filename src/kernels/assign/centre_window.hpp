// Which centres products cannot rule out for a row, with a bound of its own for each centre.
//
// candidate_window.hpp takes one bound for all rows of a base, that of the longest. Centres differ more: one that has
// few rows lies far out, and its bound would leave most rows several candidates. Let v = |c|^2 / 2 - x c be the value
// of a row and a centre that the matrix units compute from the rounded vectors x', c', and V that of the true ones: a
// row's nearest centre has the least V, since |x|^2 is the same for all. With residuals |x - x'| <= r and |c - c'| <= s
//   V - V' = (c - c') ((c + c') / 2 - x') - (x - x') c,
// so that V is within error(x, c) = |x'| a + r b + g of v, where
//   a = (cols + 16) kSumLoss |c'| + s    the sums of the matrix units, and the centre's residual times the row
//   b = |c'| + s                         the row's residual times the centre
//   g = norm_loss |c'|^2 + s (|c'| + s)  the term |c'|^2 / 2, and the centre's residual times its own length.
// The terms are lowered by what that is for a typical row, longer than most: a computed value is then a lower bound of
// V, less the `excess` of a row that is longer still; and V is no more than the value + the centre's `width` + that
// excess. So whichever centre has the least value, no centre above value + width + 2 excess + (the rounding of keys) is
// nearest. Everything is in the scaled unit of the products, for squared_l2 and l2.
#pragma once

#include "core/host_device.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/operand_bounds.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

inline constexpr double kCentreLoss = 0x1p-10;  // relative, past the roundings of a bound's own arithmetic

// The factors a and b above.
struct CentreSlopes {
  double norm;
  double residual;
};
KITH_HOST_DEVICE inline CentreSlopes centre_slopes(int64_t cols, const OperandBounds& centre) {
  const double norm = centre.norm;
  return {(static_cast<double>(cols) + 16) * kSumLoss * norm + centre.residual, norm + centre.residual};
}

KITH_HOST_DEVICE inline double centre_error(int64_t cols, const OperandBounds& row, const OperandBounds& centre) {
  const double norm = centre.norm;
  const CentreSlopes slopes = centre_slopes(cols, centre);
  const double fixed = norm_loss(cols) * norm * norm + centre.residual * slopes.residual;
  return (row.norm * slopes.norm + row.residual * slopes.residual + fixed) * (1 + kCentreLoss);
}

// By how much a row's error exceeds the typical row's, for any centre.
KITH_HOST_DEVICE inline double row_excess(int64_t cols, const OperandBounds& row, const OperandBounds& typical,
                                          const OperandBounds& largest) {
  const double longer = static_cast<double>(row.norm) - typical.norm;
  const double rougher = static_cast<double>(row.residual) - typical.residual;
  const CentreSlopes slopes = centre_slopes(cols, largest);
  return ((longer > 0 ? longer * slopes.norm : 0.0) + (rougher > 0 ? rougher * slopes.residual : 0.0)) *
         (1 + kCentreLoss);
}

// What the matrix units add to a centre's product, and how far above the computed value V can be.
struct CentreTerm {
  float term;
  float width;
};
KITH_HOST_DEVICE inline CentreTerm lowered_term(int64_t cols, float term, const OperandBounds& centre,
                                                const OperandBounds& typical) {
  constexpr double kUp = 1 + 0x1p-22;
  const double error = centre_error(cols, typical, centre);
  const double magnitude = fabs(static_cast<double>(term)) + error;
  const auto lowered = static_cast<float>(term - error - magnitude * 0x1p-23);
  return {lowered, static_cast<float>((static_cast<double>(term) - lowered + error) * kUp)};
}

// What the rounding of keys to f32, which makes centres equally near, adds to a V of at most `value`.
KITH_HOST_DEVICE inline double key_slack(const WindowProblem& problem, const OperandBounds& row, double value) {
  const double length = static_cast<double>(row.norm) + row.residual;
  const double sum = 2 * value + length * length;
  const double square = sum > 0 ? sum : 0.0;
  const double reach =
      sqrt(square * (1 + kKeyLoss) + problem.scale * problem.scale * kTinyKey) + problem.scale * 0x1p-148;
  return (reach * reach - square) / 2 + square * 0x1p-40;
}

// Window for the nearest centres of a row, given that the V of some centre is at most `value`.
KITH_HOST_DEVICE inline CandidateWindow centres_within(const WindowProblem& problem, const OperandBounds& row,
                                                       double value, double excess) {
  const double length = static_cast<double>(row.norm) + row.residual;
  double threshold = value + key_slack(problem, row, value) + excess;
  threshold += fabs(threshold) * 0x1p-22;
  const double square = 2 * value + length * length;
  CandidateWindow window;
  window.threshold = static_cast<float>(threshold);
  window.sure = square < kLargestReach * kLargestReach * problem.scale * problem.scale &&
                problem.cols <= kWindowMostHalfCols && threshold - threshold == 0;
  return window;
}

// The same, given the computed value of a centre of this width.
KITH_HOST_DEVICE inline CandidateWindow centre_window(const WindowProblem& problem, const OperandBounds& row,
                                                      double excess, float value, float width) {
  return centres_within(problem, row, static_cast<double>(value) + width + excess, excess);
}

// What the computed value of a row's nearest centre is at most, where a centre has moved by up to `moved` since the
// row's key to it, a squared distance, was `key`. Slacks as in value_after_move. Two ways: by the V of that centre,
// whose |x|^2 is known to within 2 |x'| r; and, better where the centre is nearer than the origin, by what any centre
// as near has: |x' - c'| is no more than the distance and both residuals, and the error of the matrix units no more
// than was taken off.
KITH_HOST_DEVICE inline float limit_after_move(const WindowProblem& problem, const QueryOperand& row, double excess,
                                               const OperandBounds& largest, double key, double moved) {
  constexpr double kLoss = 0x1p-20;
  const double shorter = row.squared_norm * (1 - norm_loss(problem.cols));  // than |x'|^2
  const auto half = [&](double square, double less) {
    const double value = (square - less) / 2;
    return value + (fabs(value) + row.squared_norm) * 0x1p-40;
  };
  const double distance = (sqrt(key + kTinyKey) + moved) * problem.scale * (1 + kLoss);
  const double value = half(distance * distance * (1 + kLoss), shorter - 2.0 * row.operand.norm * row.operand.residual);
  const float by_value = centres_within(problem, row.operand, value, excess).threshold;
  const double reach =
      sqrt(distance * distance * (1 + kKeyLoss) + problem.scale * problem.scale * kTinyKey) + problem.scale * 0x1p-148;
  const double apart = reach + row.operand.residual + largest.residual;
  double by_distance = half(apart * apart * (1 + kLoss), shorter) + excess;
  by_distance += fabs(by_distance) * 0x1p-22;
  return by_distance < by_value ? static_cast<float>(by_distance) : by_value;
}

// How far above the least computed value, and beside the width of the centre that has it, the nearest centre's can be,
// whichever has it. For f32 arithmetic.
KITH_HOST_DEVICE inline double row_slack(const WindowProblem& problem, const OperandBounds& row, double excess,
                                         const OperandBounds& typical, const OperandBounds& largest) {
  const double width = 3 * centre_error(problem.cols, typical, largest);
  const double norms = static_cast<double>(row.norm) * largest.norm + static_cast<double>(largest.norm) * largest.norm;
  const double most = norms + width + 2 * excess;  // of any value
  return 2 * excess + key_slack(problem, row, most) + most * 0x1p-20;
}

}  // namespace kith
