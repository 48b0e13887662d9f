// Rows of a piece of a list that a product with some queries could not exclude.
#pragma once

#include <cstdint>

namespace kith {

// Queries that are scanned together.
inline constexpr int64_t kHitQueries = 32;

// Query i has counts[i] values from values[i * stride] on, each with the number of its row in the piece. The stride has
// room for all rows of a piece and for one vector more.
struct ListHits {
  float* values = nullptr;
  uint32_t* rows = nullptr;
  int64_t stride = 0;
  // If above 0, a row that is certain to follow this many others of the piece may be omitted.
  int64_t enough = 0;
  int64_t counts[kHitQueries] = {};

  static constexpr int64_t stride_for(int64_t rows) { return rows + 64; }
};

}  // namespace kith
