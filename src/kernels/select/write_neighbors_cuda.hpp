// From packed neighbours on the device to ids and distances there, in the metric's unit.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>

#include "kernels/select/select_cuda.hpp"

namespace kith {

// `out` has at least as many places for each query as the lists; those past them are padding. Enqueues and returns.
void launch_write_neighbors(Metric metric, const DeviceLists& lists, const NeighborsView& out, cudaStream_t stream);

// The same for queries that are rows first_row, first_row + 1, ... of the base: each is left out of its own neighbours,
// of which the lists hold one more than `out` has places, or all.
void launch_write_others(Metric metric, const DeviceLists& lists, int64_t first_row, const NeighborsView& out,
                         cudaStream_t stream);

}  // namespace kith
