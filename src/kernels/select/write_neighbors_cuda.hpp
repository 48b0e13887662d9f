// From packed neighbours on the device to ids and distances there, in the metric's unit.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>

#include "kernels/select/select_cuda.hpp"

namespace kith {

// `out` has at least as many places for each query as the lists; those past them are padding. Enqueues and returns.
void launch_write_neighbors(Metric metric, const DeviceLists& lists, const NeighborsView& out, cudaStream_t stream);

}  // namespace kith
