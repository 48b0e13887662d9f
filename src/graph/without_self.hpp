// Neighbours of rows that were searched among themselves, k + 1 of each, as a graph has them: without the row itself, or
// without the last where others stand before it.
#pragma once

#include <kith/neighbors.hpp>

#include <cstdint>

namespace kith {

// Of the rows from `first` on, to their places in `out`.
inline void put_without_self(const Neighbors& found, int64_t first, const NeighborsView& out) {
  for (int64_t i = 0; i < found.queries(); ++i) {
    const int64_t row = first + i;
    int64_t taken = 0;
    for (int64_t j = 0; j <= out.k && taken < out.k; ++j) {
      if (found.ids(i)[j] == row) continue;
      out.ids[row * out.k + taken] = found.ids(i)[j];
      out.distances[row * out.k + taken] = found.distances(i)[j];
      ++taken;
    }
  }
}

}  // namespace kith
