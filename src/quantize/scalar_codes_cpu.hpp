// Scalar codes of rows and rows of scalar codes (scalar_code.hpp), on the CPU: a vector of columns at a time, then the
// bits are packed. Cost: the time to read and write both, and a division for each value.
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cstdint>

namespace kith {

// `count` rows of f32, `stride` values apart. `scratch`: format.cols bytes.
void encode_scalar_cpu(const CodeFormat& format, const float* leasts, const float* spans, const float* rows,
                       int64_t stride, int64_t count, uint8_t* codes, uint8_t* scratch);
void decode_scalar_cpu(const CodecView& codec, const uint8_t* codes, int64_t count, float* rows, int64_t stride,
                       uint8_t* scratch);

// Lowers leasts and raises largests to the rows' values, column by column.
void widen_ranges_cpu(const float* rows, int64_t stride, int64_t count, int64_t cols, float* leasts, float* largests);

// Sub-codes of a vector, one a byte, as the code that holds them, and back. 1 to 8 bits.
void pack_sub_codes(const uint8_t* sub_codes, int64_t count, int bits, uint8_t* code);
void unpack_sub_codes(const uint8_t* code, int64_t count, int bits, uint8_t* sub_codes);

}  // namespace kith
