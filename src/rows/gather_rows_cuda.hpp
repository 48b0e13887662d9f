// Gathers listed rows in a GPU's memory into consecutive ones. Cost: one read and one write of the listed rows. All
// functions enqueue and return.
#pragma once

#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// As they are stored.
void launch_gather_rows(const DeviceRowsView& from, int64_t cols, const uint32_t* rows, int64_t count, std::byte* out,
                        cudaStream_t stream);

// As f32. Where `rows` is null, rows 0, 1, ...
void launch_gather_floats(const DeviceRowsView& from, int64_t cols, const uint32_t* rows, int64_t count, float* out,
                          cudaStream_t stream);

}  // namespace kith
