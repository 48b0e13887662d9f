// Which pairs of a join a product of halves cannot rule out, and a bound below the key of one. candidate_window.hpp has
// the proof; each row of a join is a query in its turn, and the others are its base: their bounds are the largest of
// the join. Every row of inner_product has a scale of its own, by which the others' values are divided again.
//
// There are many limits to a join and its threads wait for them, so they are computed in f32: what each of the few
// operations rounds, 2^-24 of its terms, is covered by kJoinSlack of the largest of these, far less than the halves'
// own window.
#pragma once

#include "core/host_device.hpp"
#include "kernels/matrix/candidate_window.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

// What is known of a row's operand.
struct JoinBounds {
  float squared_norm = 0;
  float norm = 0;
  float residual = 0;
  float scale = 0;  // 0: nothing, it has no operand
};

// For inner_product: powers of two beyond which a value divided by one could lose digits. Rows past it count as unsure.
inline constexpr float kLargestJoinScale = 0x1p40f;
KITH_HOST_DEVICE inline bool scale_is_sure(KeyKind kind, float scale) {
  return kind != KeyKind::inner_product || (scale <= kLargestJoinScale && scale >= 1 / kLargestJoinScale);
}

// What a pair of operands with the product p is compared by, for one of its rows: v = w - p with the other's weight
// w = |x|^2 / 2, or v = -p w with w = 1 / scale for inner_product.
KITH_HOST_DEVICE inline float join_weight(KeyKind kind, const JoinBounds& row) {
  return kind == KeyKind::inner_product ? 1.0f / row.scale : 0.5f * row.squared_norm;
}
KITH_HOST_DEVICE inline float join_value(KeyKind kind, float product, float weight) {
  return kind == KeyKind::inner_product ? -product * weight : weight - product;
}
// In what unit the bounds of others count.
KITH_HOST_DEVICE inline float join_factor(KeyKind kind, const JoinBounds& row) {
  return kind == KeyKind::inner_product ? 1.0f / row.scale : 1.0f;
}

struct JoinWindow {
  KeyKind kind = KeyKind::l2;
  JoinBounds row;
  float moved = 0;  // by rounding, of both
  float error = 0;  // of v: the sums' loss and, for inner_product, the residuals'
};

namespace join_window_detail {

inline constexpr float kJoinSlack = 0x1p-19f;
inline constexpr float kTinyDistance = 0x1p-73f;  // the root of kTinyKey and more, in the unscaled unit
inline constexpr float kTinyValue = 1e-32f;       // kTinyKey at the largest scale

// Limit for all others whose distance, but for the rounding of the key, is no larger than `reach`, in the scaled unit.
KITH_HOST_DEVICE inline float limit_within(const JoinWindow& window, float reach) {
  reach += reach * kJoinSlack + window.row.scale * (window.kind == KeyKind::cosine ? 0x1p-46f : kTinyDistance);
  if (!(reach < static_cast<float>(kLargestReach) * window.row.scale)) return HUGE_VALF;
  const float far = reach + window.moved;
  const float limit = (far * far - window.row.squared_norm) * 0.5f + window.error;
  return limit + (far * far + window.row.squared_norm) * kJoinSlack;
}

}  // namespace join_window_detail

// `others`: the largest bounds of the join, each times its factor.
KITH_HOST_DEVICE inline JoinWindow join_window(KeyKind kind, int64_t cols, const JoinBounds& row,
                                               const OperandBounds& others) {
  const auto columns = static_cast<float>(cols);
  const float moved = row.residual + others.residual;
  float error = (columns + 16) * static_cast<float>(kSumLoss) * row.norm * others.norm;
  if (kind == KeyKind::inner_product) {
    error += row.residual * (others.norm + others.residual) + row.norm * others.residual;
  } else {
    error += (columns / 32 + 16) * 0x1p-23f * (row.squared_norm + others.norm * others.norm);
  }
  return {kind, row, moved + moved * join_window_detail::kJoinSlack, error + error * join_window_detail::kJoinSlack};
}

// Upper limit of v for the nearest neighbour, given the smallest v.
KITH_HOST_DEVICE inline float nearest_limit(const JoinWindow& window, float least) {
  using namespace join_window_detail;
  if (window.kind == KeyKind::inner_product) {
    const float most = fabsf(least) + window.error;
    if (!(most < static_cast<float>(kLargestReach) * window.row.scale)) return HUGE_VALF;
    return least + 2 * window.error + most * kJoinSlack + kTinyValue;
  }
  const float square = 2 * (least + window.error) + window.row.squared_norm;
  const float rounded = (fabsf(least) + window.error + window.row.squared_norm) * kJoinSlack;
  return limit_within(window, sqrtf(fmaxf(square + rounded, 0.0f)) + window.moved);
}

// No v above it belongs to a key up to `most`.
KITH_HOST_DEVICE inline float key_limit(const JoinWindow& window, float most) {
  using namespace join_window_detail;
  if (!(most < HUGE_VALF)) return HUGE_VALF;
  if (window.kind == KeyKind::inner_product) {
    const float reach = most * window.row.scale;
    if (!(fabsf(reach) + window.error < static_cast<float>(kLargestReach) * window.row.scale)) return HUGE_VALF;
    return reach + window.error + (fabsf(reach) + window.error) * kJoinSlack + kTinyValue;
  }
  const float key = fmaxf(most, 0.0f);  // keys are not negative
  const float distance = window.kind == KeyKind::l2 ? key : sqrtf(window.kind == KeyKind::cosine ? 2 * key : key);
  return limit_within(window, distance * window.row.scale);
}

// No larger than the key of a pair with that v; -inf where nothing is sure.
KITH_HOST_DEVICE inline float key_below(const JoinWindow& window, float v) {
  using namespace join_window_detail;
  if (window.kind == KeyKind::inner_product) {
    const float least = v - window.error - (fabsf(v) + window.error) * kJoinSlack - kTinyValue;
    const float key = least / window.row.scale;
    const float below = key - fabsf(key) * kJoinSlack;
    return fabsf(below) < 1e37f ? below : -HUGE_VALF;
  }
  const float rounded = (fabsf(v) + window.error + window.row.squared_norm) * kJoinSlack;
  const float square = 2 * (v - window.error) + window.row.squared_norm - 2 * rounded;
  if (!(square > 0)) return 0;  // of distances no key is smaller
  const float reach = sqrtf(square) - window.moved;
  const float unit = window.kind == KeyKind::cosine ? 0x1p-46f : kTinyDistance;
  const float distance = (reach - reach * kJoinSlack) / window.row.scale - unit;
  if (!(distance > 0)) return 0;
  const float key = window.kind == KeyKind::l2       ? distance
                    : window.kind == KeyKind::cosine ? distance * distance * 0.5f
                                                     : distance * distance;
  return key < 1e37f ? key - key * kJoinSlack : -HUGE_VALF;
}

}  // namespace kith
