// Where rows within a radius go on the GPU, however many a query has: each query takes its places, one after the other,
// of one array.
#pragma once

#include <cstdint>

namespace kith {

struct RangeTarget {
  uint64_t* hits = nullptr;    // packed neighbours
  uint32_t capacity = 0;       // of all queries together
  uint32_t* total = nullptr;   // zeroed before; may end above capacity: then some queries have not been delivered
  uint32_t* starts = nullptr;  // of each query's
  uint32_t* counts = nullptr;  // kNotDelivered before, and after where there was no room
};
inline constexpr uint32_t kNotDelivered = 0xFFFFFFFFu;

// Parts of a tile's rows that are counted apart (range_tile_cuda.hpp).
inline constexpr int kRangeTileParts = 32;

}  // namespace kith
