// Keys of many queries against many rows, on the GPU.
#pragma once

#include <kith/metric.hpp>

#include "kernels/distance/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Writes ordered keys (core/ordered_key.hpp) to keys[query * key_stride + row]. Enqueues and returns. At most about a
// million queries and 2^31 - 1 rows at a time.
void launch_distance(Metric metric, const DeviceRowsView& queries, const DeviceRowsView& rows, int64_t cols,
                     uint32_t* keys, int64_t key_stride, cudaStream_t stream);

}  // namespace kith
