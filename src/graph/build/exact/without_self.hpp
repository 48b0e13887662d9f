// Neighbours of rows that were searched among themselves, k + 1 of each, as a graph has them: without the row itself, or
// without the last where others stand before it.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include <cstdint>

namespace kith {

// Copies all but the row itself: k + 1 neighbours to k.
inline void put_others(const int64_t* ids, const float* distances, int64_t row, int64_t k, int64_t* out_ids,
                       float* out_distances) {
  int64_t taken = 0;
  for (int64_t j = 0; j <= k && taken < k; ++j) {
    if (ids[j] == row) continue;
    out_ids[taken] = ids[j];
    out_distances[taken] = distances[j];
    ++taken;
  }
}

// Moves the neighbours of the rows from `first` on, on the host, to their places in `out`.
inline void put_without_self(const NeighborsView& found, int64_t first, const NeighborsView& out) {
  for (int64_t i = 0; i < found.queries; ++i) {
    const int64_t row = first + i;
    put_others(found.ids + i * found.k, found.distances + i * found.k, row, out.k, out.ids + row * out.k,
               out.distances + row * out.k);
  }
}
inline void put_without_self(Neighbors found, int64_t first, const NeighborsView& out) {
  put_without_self(found.view(), first, out);
}

// The same in the memory of a GPU: `found`, out.k + 1 of each row, and `out` lie on one device. Enqueues on the resources'
// stream, or waits where it is none.
void put_without_self_cuda(const NeighborsView& found, int64_t first, const NeighborsView& out, const Resources& resources);

}  // namespace kith
