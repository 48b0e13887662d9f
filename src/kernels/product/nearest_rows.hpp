// What a product says of a query's nearest rows.
#pragma once

#include <cstdint>

namespace kith {

// The three least, in order; values[3] is the fourth's. kNoNearest where there are fewer.
struct alignas(16) NearestRows {
  float values[4];
  uint32_t rows[4];
};
inline constexpr uint32_t kNoNearest = 0xFFFFFFFFu;

}  // namespace kith
