// Which pairs of a join a product of halves cannot rule out, and a bound below the key of one (candidate_window.hpp has
// the proof). Each row of a join is a query in its turn, and the others are its base: their facts are the largest of the
// join. Every row of inner_product has a scale of its own, by which the others' values are divided again.
#pragma once

#include "core/host_device.hpp"
#include "kernels/matrix/candidate_window.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

// What is known of a row's operand.
struct JoinFacts {
  float squared_norm = 0;
  float norm = 0;
  float residual = 0;
  float scale = 0;  // 0: nothing, it has no operand
};

// Of inner_product: powers of two beyond which a value divided by one could lose digits. Rows past it count as unsure.
inline constexpr float kLargestJoinScale = 0x1p40f;
KITH_HOST_DEVICE inline bool scale_is_sure(KeyKind kind, float scale) {
  return kind != KeyKind::inner_product || (scale <= kLargestJoinScale && scale >= 1 / kLargestJoinScale);
}

// v = term - factor p, with p the product of both operands, is what the row's others are compared by.
KITH_HOST_DEVICE inline float join_term(KeyKind kind, const JoinFacts& row) {
  return kind == KeyKind::inner_product ? 0.0f : 0.5f * row.squared_norm;
}
KITH_HOST_DEVICE inline float join_factor(KeyKind kind, const JoinFacts& row) {
  return kind == KeyKind::inner_product ? 1.0f / row.scale : 1.0f;
}

struct JoinWindow {
  WindowProblem problem;
  QueryWindow query;
  OperandFacts others;  // the largest, each times its factor
};

KITH_HOST_DEVICE inline JoinWindow join_window(KeyKind kind, int64_t cols, const JoinFacts& row,
                                               const OperandFacts& others) {
  return {{kind, false, cols, static_cast<double>(row.scale)},
          {{row.norm, row.residual}, static_cast<double>(row.squared_norm), 0.0},
          others};
}

// No v above it belongs to the nearest, given the least of all; none to a key up to `most`.
KITH_HOST_DEVICE inline float nearest_limit(const JoinWindow& window, float least) {
  const CandidateWindow found =
      candidate_window(window.problem, window.query, window.others, static_cast<double>(least));
  return found.sure ? found.threshold : HUGE_VALF;
}
KITH_HOST_DEVICE inline float key_limit(const JoinWindow& window, float most) {
  if (!(most < HUGE_VALF)) return HUGE_VALF;
  const CandidateWindow found = range_window(window.problem, window.query, window.others, static_cast<double>(most));
  return found.sure ? found.threshold : HUGE_VALF;
}

// No larger than the key of a pair with that v; -inf where nothing is sure.
KITH_HOST_DEVICE inline float key_below(const JoinWindow& window, float v) {
  constexpr double kLoss = 0x1p-20;  // past the roundings of the key and of what follows
  const WindowProblem& problem = window.problem;
  double key = 0;
  if (problem.kind == KeyKind::inner_product) {
    key = (static_cast<double>(v) - inner_product_error(problem, window.query, window.others)) / problem.scale;
  } else {
    const double square =
        2 * (static_cast<double>(v) - value_error(problem, window.query, window.others)) + window.query.squared_norm;
    const double moved = static_cast<double>(window.query.query.residual) + window.others.residual;
    double distance = (sqrt(square > 0 ? square : 0.0) - moved) / problem.scale;
    distance = distance * (1 - kLoss) - (problem.kind == KeyKind::cosine ? kUnitLoss : 0.0);
    distance = distance > 0 ? distance : 0.0;
    key = problem.kind == KeyKind::l2       ? distance
          : problem.kind == KeyKind::cosine ? distance * distance / 2
                                            : distance * distance;
  }
  key -= fabs(key) * kLoss + kTinyKey;
  return key - key == 0 && fabs(key) < 1e37 ? static_cast<float>(key) : -HUGE_VALF;
}

}  // namespace kith
