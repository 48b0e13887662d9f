// What a product of some queries and a piece of a list could not exclude.
#pragma once

#include <cstdint>

namespace kith {

// Queries that are scanned together.
inline constexpr int64_t kHitQueries = 32;

// Of query i: counts[i] values from values[i * stride] on, each with the number of its row in the piece. The stride has
// room for all rows of a piece and for one vector more.
struct ListHits {
  float* values = nullptr;
  uint32_t* rows = nullptr;
  int64_t stride = 0;
  // Where above 0: a row that so many others of the piece are sure to precede need not be told.
  int64_t enough = 0;
  int64_t counts[kHitQueries] = {};

  static constexpr int64_t stride_for(int64_t rows) { return rows + 64; }
};

}  // namespace kith
