// Bounds for a row's key from fast f32 sums over the row as it is stored (scan_rows_cpu.hpp).
#pragma once

#include "core/infinity.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/error_bound.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

// From the fast sums of a row to bounds for its key, per metric.
class KeyBounds {
 public:
  KeyBounds(KeyKind kind, int64_t cols, double query_squared_norm)
      : kind_(kind),
        relative_(static_cast<float>(product_error(cols))),
        absolute_(static_cast<float>(underflow_error(cols))),
        query_error_(static_cast<float>(product_error(cols) * std::sqrt(query_squared_norm))),
        query_known_(query_squared_norm < kLargestSquaredNorm) {}

  // Bounds the keys of `count` rows from below and above; a bound is infinite where nothing is known of its row.
  // scan_rows_cpu.hpp says what the sums are.
  void bound(const float* values, const float* bound_sums, int64_t count, float* lower, float* upper) const {
    switch (kind_) {
      case KeyKind::inner_product:
        return bound_each(values, bound_sums, count, lower, upper, [=, this](float value, float bound_sum) {
          return Near{-value, query_error_ * std::sqrt(bound_sum + absolute_) + absolute_,
                      query_known_ & (bound_sum < static_cast<float>(kLargestSquaredNorm))};
        });
      case KeyKind::cosine:  // the query is normalised
        return bound_each(values, bound_sums, count, lower, upper, [=, this](float value, float bound_sum) {
          return Near{1.0f - value / std::sqrt(bound_sum), 2 * relative_,
                      (bound_sum > kSmallestSquaredNorm) & (bound_sum < static_cast<float>(kLargestSquaredNorm))};
        });
      case KeyKind::linf:
        return bound_each(values, bound_sums, count, lower, upper, [=, this](float value, float bound_sum) {
          return Near{value, value * relative_ + absolute_, (bound_sum < kInfinity) & (value < kInfinity)};
        });
      default:  // sums of terms that are not negative
        bound_each(values, bound_sums, count, lower, upper, [=, this](float value, float) {
          return Near{value, value * relative_ + absolute_, value < kInfinity};
        });
    }
    if (kind_ != KeyKind::l2) return;
    for (int64_t i = 0; i < count; ++i) {
      lower[i] = lower[i] > -kInfinity ? root_below(lower[i]) : -kInfinity;
      upper[i] = root_above(upper[i]);
    }
  }

 private:
  // A key is within `error` of `value`, if `known`.
  struct Near {
    float key;
    float error;
    int known;  // 0 or 1, as comparisons by vectors give it
  };
  template <typename Of>
  static void bound_each(const float* values, const float* bound_sums, int64_t count, float* lower, float* upper,
                         const Of& of) {
    for (int64_t i = 0; i < count; ++i) {
      const Near near = of(values[i], bound_sums[i]);
      const bool known = (near.known & (std::fabs(values[i]) < kInfinity)) != 0;
      lower[i] = known ? near.key - near.error : -kInfinity;
      upper[i] = known ? near.key + near.error : kInfinity;
    }
  }

  KeyKind kind_;
  float relative_;
  float absolute_;
  float query_error_;
  bool query_known_;
};

}  // namespace kith
