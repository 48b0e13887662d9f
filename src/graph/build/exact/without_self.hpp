// Converts the k + 1 neighbours of rows searched among themselves to a graph's k: removes the row itself, or the last
// if the row is not among them.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include <cstdint>

namespace kith {

// Copies all neighbours but the row itself: k of k + 1.
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

// Copies the neighbours of the rows from `first` on, in host memory, to their places in `out`.
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

// The same in GPU memory: `found`, out.k + 1 per row, and `out` must be on the same device. Enqueues on the resources'
// stream, or waits if there is none.
void put_without_self_cuda(const NeighborsView& found, int64_t first, const NeighborsView& out,
                           const Resources& resources);

}  // namespace kith
