// Scalar codes of rows (scalar_code.hpp) on the CPU: a vector of columns at a time, then the bits are packed. Cost: the time to read and write both, and a division for each value.
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cstdint>

namespace kith {

// `count` rows of f32, `stride` values apart. `scratch`: format.cols bytes.
void encode_scalar_cpu(const CodeFormat& format, const float* leasts, const float* spans, const float* rows,
                       int64_t stride, int64_t count, uint8_t* codes, uint8_t* scratch);

// Lowers leasts and raises largests to the rows' values, column by column.
void widen_ranges_cpu(const float* rows, int64_t stride, int64_t count, int64_t cols, float* leasts, float* largests);

}  // namespace kith
