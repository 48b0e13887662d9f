// The map of core/ordered_key.hpp for keys that are known to be numbers: without a branch, so that compilers make
// vectors of loops.
#pragma once

#include <bit>
#include <cstdint>

namespace kith {

inline uint32_t ordered_number(float key) {
  const auto bits = std::bit_cast<uint32_t>(key + 0.0f);  // -0.0 becomes +0.0
  return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
}

inline float number_of_ordered(uint32_t ordered) {
  return std::bit_cast<float>(ordered ^ (~static_cast<uint32_t>(static_cast<int32_t>(ordered) >> 31) | 0x80000000u));
}

}  // namespace kith
