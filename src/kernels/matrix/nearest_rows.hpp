// The nearest rows of a query by a product.
#pragma once

#include "cuda/device_core.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

inline constexpr int kNearestKept = 3;
inline constexpr uint32_t kNoNearest = 0xFFFFFFFFu;
inline constexpr float kFarthestValue = 3e38f;  // the value of no row

// The three smallest, in order; values[3] is the fourth's value. kNoNearest if there are fewer.
struct alignas(16) NearestRows {
  float values[kNearestKept + 1];
  uint32_t rows[kNearestKept + 1];
};

// Inserts a row into the three smallest, stored behind value_at(i) and row_at(i); the displaced value becomes the
// fourth.
template <typename ValueAt, typename RowAt, typename Row>
KITH_DEVICE_INLINE void insert_nearest(const ValueAt& value_at, const RowAt& row_at, float value, Row row) {
  KITH_UNROLL
  for (int i = 0; i < kNearestKept; ++i) {
    const float there = value_at(i);
    if (!(value < there)) continue;
    const Row other = row_at(i);
    value_at(i) = value;
    row_at(i) = row;
    value = there;
    row = other;
  }
  value_at(kNearestKept) = fminf(value_at(kNearestKept), value);
}

}  // namespace kith
