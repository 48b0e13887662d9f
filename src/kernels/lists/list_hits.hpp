// The rows of a piece of a list that some queries' approximate products could not exclude.
#pragma once

#include <cstdint>

namespace kith {

// How many queries are scanned together.
inline constexpr int64_t kHitQueries = 32;

// Query i has counts[i] values from values[i * stride] on, and their row numbers within the piece. The stride leaves
// room for all rows of a piece plus one SIMD vector.
struct ListHits {
  float* values = nullptr;
  uint32_t* rows = nullptr;
  int64_t stride = 0;
  // If above 0, rows that certainly rank behind this many others of the piece may be omitted.
  int64_t enough = 0;
  int64_t counts[kHitQueries] = {};

  static constexpr int64_t stride_for(int64_t rows) { return rows + 64; }
};

}  // namespace kith
