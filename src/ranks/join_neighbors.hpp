// Merges the results of parts of the rows, by ranks or devices: the first k by (key, row).
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>

#include <cstdint>
#include <span>

namespace kith {

// The result of a search among consecutive rows: `width` neighbours of each query, nearest first, with ids that count
// from the first of these rows; -1 means none.
struct FoundInPart {
  const int64_t* ids = nullptr;
  const float* distances = nullptr;
  int64_t width = 0;
  int64_t first_row = 0;
};

// Fills `out`, in host memory, for all its queries. Parts may be empty. Cost: k x parts comparisons a query.
void join_neighbors(std::span<const FoundInPart> parts, Metric metric, const NeighborsView& out);

}  // namespace kith
