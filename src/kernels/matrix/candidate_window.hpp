// The window of rows that a fast product cannot rule out: the proof behind exact search on matrix units.
//
// Queries and rows are rounded to halves (after centring, or scaling to unit length, and a power of two) or kept as
// bytes, and v = |x|^2 / 2 - q x (the distances) or -q x (inner_product) is computed for all pairs. Let
//   r      bound the distance by which rounding moved a vector (its residual's norm, measured while rounding),
//   e      bound the error of v for the rounded vectors: products of halves are exact in f32, and each addition of the
//          matrix units, which truncate, loses at most 2^-23 of |q| |x|: at most 2^-21 per product (kSumLoss), in
//          blocks of four products or more,
//   kth    be a value that at least k rows do not exceed.
// By the triangle inequality a distance of rounded vectors is within r_q + r_x of the true one. So the k-th smallest
// distance is at most `reach` = sqrt(2 (kth + e) + |q|^2) + r_q + r_x, and a row that is nearer than that has
// v <= ((reach + r_q + r_x)^2 - |q|^2) / 2 + e, the `threshold`. An inner product differs by at most
// r_q |x| + |q| r_x, and so v, with r_x |x| for the square, by at most `loss`: a row that is nearer has also
// v <= kth + 2 loss. That is the lower threshold of a query far from the rows, whose distances are all about the same.
// The rounding of the reported key to f32, which can make rows equal, is added to the reach.
// Everything is in the scaled unit of the products; `key_limit` is the reach as a key.
#pragma once

#include "core/host_device.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/operand_bounds.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

struct WindowProblem {
  KeyKind kind = KeyKind::l2;
  bool bytes = false;  // products of signed bytes: exact
  int64_t cols = 0;
  double scale = 1;  // multiplies the values of queries and rows; for inner_product the product of both scales
};

struct QueryWindow {
  OperandBounds query;
  double squared_norm;            // of the rounded query, with a relative error up to norm_loss
  double key_offset;              // added to v for the key of an inner product of bytes
  double true_square = HUGE_VAL;  // see QueryOperand
};

struct CandidateWindow {
  float threshold = 0;
  float key_limit = 0;
  bool sure = false;  // false: there is no bound
};

inline constexpr double kSumLoss = 0x1p-21;
inline constexpr double kKeyLoss = 0x1p-21;            // relative, of a key's rounding to f32, squared or not
inline constexpr double kTinyKey = 0x1p-147;           // absolute: keys below f32's normal range
inline constexpr double kUnitLoss = 0x1p-48;           // of a canonical distance of unit vectors in double
inline constexpr double kLargestReach = 1e18;          // beyond this a squared distance may overflow f32
inline constexpr int64_t kWindowMostCols = 8000;       // of bytes, whose sums must fit, and of k-means
inline constexpr int64_t kWindowMostHalfCols = 16384;  // of halves: beyond these the bounds leave too many candidates

// The relative error of a squared norm that a warp adds up in f32, cols / 32 values per lane.
KITH_HOST_DEVICE inline double norm_loss(int64_t cols) { return (static_cast<double>(cols) / 32 + 16) * 0x1p-23; }

// The error of a computed v for the rounded vectors.
KITH_HOST_DEVICE inline double value_error(const WindowProblem& problem, const QueryWindow& query,
                                           const OperandBounds& rows) {
  const double product = static_cast<double>(query.query.norm) * rows.norm;
  const double square = static_cast<double>(rows.norm) * rows.norm;
  const double cols = static_cast<double>(problem.cols);
  if (problem.bytes) {
    // Half a unit from truncating |x|^2 / 2, plus the rounding of the value to f32.
    const double shifts = problem.kind == KeyKind::inner_product ? cols * 32768 : 0;
    return 1.0 + 0x1p-22 * (product + square + shifts);
  }
  const double sum = (cols + 16) * kSumLoss * product;  // 16: the term is added at the end
  if (problem.kind == KeyKind::inner_product) return sum;
  return sum + norm_loss(problem.cols) * (query.squared_norm + square);
}

// The error of a computed inner product of rounded vectors, against the true one.
KITH_HOST_DEVICE inline double inner_product_error(const WindowProblem& problem, const QueryWindow& query,
                                                   const OperandBounds& rows) {
  return value_error(problem, query, rows) + query.query.residual * (static_cast<double>(rows.norm) + rows.residual) +
         static_cast<double>(query.query.norm) * rows.residual;
}

// The error of a computed v of halves of differences, against the true one.
KITH_HOST_DEVICE inline double difference_error(const WindowProblem& problem, const QueryWindow& query,
                                                const OperandBounds& rows) {
  const double q = query.query.norm;
  const double x = rows.norm;
  const double moved_row = rows.residual;
  const double sums = (static_cast<double>(problem.cols) + 16) * kSumLoss * q * x + norm_loss(problem.cols) * x * x;
  return sums + query.query.residual * (x + moved_row) + moved_row * (q + x + moved_row);
}

// Window for all rows whose true distance (inner_product: negative product, without the offset) is at most `reach`,
// allowing for the rounding of the key.
KITH_HOST_DEVICE inline CandidateWindow window_within(const WindowProblem& problem, const QueryWindow& query,
                                                      const OperandBounds& rows, double reach) {
  const double moved = static_cast<double>(query.query.residual) + rows.residual;
  CandidateWindow window;
  double threshold = 0;
  double key = 0;
  bool in_range = false;
  if (problem.kind == KeyKind::inner_product) {
    const double loss = fabs(reach + query.key_offset) * kKeyLoss + kTinyKey * problem.scale;
    threshold = reach + loss + inner_product_error(problem, query, rows);
    key = (reach + loss + query.key_offset) / problem.scale;
    const double largest = (static_cast<double>(query.query.norm) * rows.norm + fabs(query.key_offset)) / problem.scale;
    in_range = largest < kLargestReach && problem.scale > 0;
  } else {
    reach = sqrt(reach * reach * (1 + kKeyLoss) + problem.scale * problem.scale * kTinyKey);
    reach += problem.scale * (problem.kind == KeyKind::cosine ? kUnitLoss : 0x1p-148);
    threshold = ((reach + moved) * (reach + moved) - query.squared_norm) / 2 + value_error(problem, query, rows);
    const double distance = reach / problem.scale;
    key = problem.kind == KeyKind::l2       ? distance
          : problem.kind == KeyKind::cosine ? distance * distance / 2
                                            : distance * distance;
    in_range = distance < kLargestReach;
  }
  // Rounded up, so that the conversion to f32 excludes nothing.
  threshold += fabs(threshold) * 0x1p-22;
  key += fabs(key) * 0x1p-22 + kTinyKey;
  window.threshold = static_cast<float>(threshold);
  window.key_limit = static_cast<float>(key);
  const int64_t most_cols = problem.bytes ? kWindowMostCols : kWindowMostHalfCols;
  window.sure = in_range && problem.cols <= most_cols && threshold - threshold == 0 && key - key == 0;
  return window;
}

// Window for the k nearest. At least k rows have a computed value up to `kth`.
KITH_HOST_DEVICE inline CandidateWindow candidate_window(const WindowProblem& problem, const QueryWindow& query,
                                                         const OperandBounds& rows, double kth) {
  if (problem.kind == KeyKind::inner_product) {
    return window_within(problem, query, rows, kth + inner_product_error(problem, query, rows));
  }
  const auto root = [](double square) { return sqrt(square > 0 ? square : 0.0); };
  const double moved = static_cast<double>(query.query.residual) + rows.residual;
  const double reach = root(2 * (kth + value_error(problem, query, rows)) + query.squared_norm) + moved;
  if (problem.bytes || !has_differences(problem.kind)) return window_within(problem, query, rows, reach);
  const double loss = difference_error(problem, query, rows);
  const double far_reach = root(2 * (kth + loss) + query.true_square);
  const double nearer = far_reach < reach ? far_reach : reach;
  CandidateWindow window = window_within(problem, query, rows, nearer);
  const double threshold = kth + 2 * loss + nearer * nearer * kKeyLoss + problem.scale * problem.scale * kTinyKey +
                           nearer * problem.scale * 0x1p-146;
  const auto rounded_up = static_cast<float>(threshold + fabs(threshold) * 0x1p-22);
  if (rounded_up < window.threshold) window.threshold = rounded_up;
  return window;
}

// Window for a range search: rows with keys up to `most`.
KITH_HOST_DEVICE inline CandidateWindow range_window(const WindowProblem& problem, const QueryWindow& query,
                                                     const OperandBounds& rows, double most) {
  if (problem.kind == KeyKind::inner_product) {
    return window_within(problem, query, rows, most * problem.scale - query.key_offset);
  }
  const double key = most > 0 ? most : 0.0;  // no distance is below zero
  const double distance = problem.kind == KeyKind::l2       ? key
                          : problem.kind == KeyKind::cosine ? sqrt(2 * key)
                                                            : sqrt(key);
  return window_within(problem, query, rows, distance * problem.scale);
}

// What a row's computed value is at most, once it has moved by up to `moved` since its key was `key`: for squared_l2
// and inner_product of halves. `query_scale` is the query's part of the problem's scale, where it has one. Keys below
// f32's normal range are off by more than their digits say, so an absolute slack stands beside the relative ones.
KITH_HOST_DEVICE inline double value_after_move(const WindowProblem& problem, const QueryWindow& query,
                                                const OperandBounds& rows, double key, double moved,
                                                double query_scale) {
  constexpr double kLoss = 0x1p-20;  // past the roundings of the key, of the move and of what follows
  if (problem.kind == KeyKind::inner_product) {
    const double length = static_cast<double>(query.query.norm) + query.query.residual;
    const double value = (key + fabs(key) * kLoss + kTinyKey) * problem.scale +
                         length * moved * (problem.scale / query_scale) * (1 + kLoss);
    return value + fabs(value) * kLoss + inner_product_error(problem, query, rows);
  }
  const double residuals = static_cast<double>(query.query.residual) + rows.residual;
  const double distance = (sqrt(key + kTinyKey) + moved) * problem.scale * (1 + kLoss) + residuals;
  const double value = (distance * distance * (1 + kLoss) - query.squared_norm) / 2 + value_error(problem, query, rows);
  return value + fabs(value) * kLoss;
}

// The unit of a query's products with a base.
KITH_HOST_DEVICE inline double window_scale(const WindowProblem& problem, const BaseBounds& base,
                                            const QueryOperand& query) {
  const double scale = problem.bytes ? 1.0 : operand_scale(base.sample_largest);
  return problem.kind == KeyKind::inner_product ? scale * query.scale : scale;
}

// What the window of a query is made of, where its and a base's operands have been measured.
struct MeasuredWindow {
  WindowProblem problem;
  QueryWindow query;
  bool sure = false;  // false: a row or the query has no operand, and no window holds what it should
};

// `problem` is complete but for its scale.
KITH_HOST_DEVICE inline MeasuredWindow measured_window(const WindowProblem& problem, const BaseBounds& base,
                                                       const QueryOperand& query) {
  MeasuredWindow measured{problem, {query.operand, query.squared_norm, query.key_offset, query.true_square}};
  measured.problem.scale = window_scale(problem, base, query);
  const bool far_query = base.has_far != 0 && !(query.operand.norm <= kFarQuery * base.ordinary);
  measured.sure = query.unsure == 0 && base.unsure == 0 && !far_query;
  return measured;
}

}  // namespace kith
