// What every code needs on a GPU beside the search for codewords: rows widened, values rounded to bits or to a dtype,
// sub-codes packed, and codes decoded. A thread for each byte or value; launchers enqueue. Cost: what is read and
// written.
#pragma once

#include "kernels/codes/code_format.hpp"
#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr uint64_t kNothingLost = ~uint64_t{0};

// Packed f32 of rows of any dtype.
void launch_widen_rows(const DeviceRowsView& rows, int64_t cols, float* out, cudaStream_t stream);

// f32 rows to scalar codes; `leasts` and `spans` on the device.
void launch_encode_scalar(const CodeFormat& format, const float* leasts, const float* spans, const float* rows,
                          int64_t stride, int64_t count, uint8_t* codes, cudaStream_t stream);

// f32 rows to stored values. `lost` becomes the least row * cols + column whose value the dtype cannot hold.
void launch_encode_stored(const CodeFormat& format, const float* rows, int64_t stride, int64_t count, uint8_t* codes,
                          uint64_t* lost, cudaStream_t stream);

// Labels, parts of each row one after the other, to codes of fewer than 8 bits each.
void launch_pack_labels(const CodeFormat& format, const uint8_t* labels, int64_t count, uint8_t* codes,
                        cudaStream_t stream);

// Codes `code_stride` bytes apart to rows `stride` values apart.
void launch_decode(const CodecView& codec, const uint8_t* codes, int64_t code_stride, int64_t count, float* out,
                   int64_t stride, cudaStream_t stream);

// Lowers leasts and raises largests, which are ordered keys (core/ordered_key.hpp), to the rows' values.
void launch_column_ranges(const DeviceRowsView& rows, int64_t cols, uint32_t* leasts, uint32_t* largests,
                          cudaStream_t stream);

}  // namespace kith
