// The one order of Kith's results.
//
// Inside, every metric is an f32 key, smaller is nearer (squared L2, -ip, 1 - cos). A neighbour is a u64: the key,
// mapped to u32 so that unsigned order is float order, above the row number. Comparing two of them compares
// (key, row), so equal keys go to the smaller row. -0.0 counts as +0.0; a NaN comes after +inf; padding after all.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>
#include <cstring>

namespace kith {

inline constexpr uint64_t kPadding = ~uint64_t{0};
inline constexpr uint32_t kNanKey = 0xFFFFFFFFu;

KITH_HOST_DEVICE inline uint32_t ordered_key(float key) {
  if (key != key) return kNanKey;
  key += 0.0f;  // -0.0 becomes +0.0
  uint32_t bits;
  memcpy(&bits, &key, sizeof bits);
  return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);  // all bits, or the sign
}

KITH_HOST_DEVICE inline float key_of_ordered(uint32_t ordered) {
  const uint32_t bits = ordered == kNanKey ? 0x7FC00000u : ordered & 0x80000000u ? ordered & 0x7FFFFFFFu : ~ordered;
  float key;
  memcpy(&key, &bits, sizeof key);
  return key;
}

KITH_HOST_DEVICE constexpr uint64_t pack_neighbor(uint32_t ordered, uint32_t row) {
  return static_cast<uint64_t>(ordered) << 32 | row;
}
KITH_HOST_DEVICE constexpr uint32_t ordered_of(uint64_t neighbor) { return static_cast<uint32_t>(neighbor >> 32); }
KITH_HOST_DEVICE constexpr uint32_t row_of(uint64_t neighbor) { return static_cast<uint32_t>(neighbor); }

}  // namespace kith
