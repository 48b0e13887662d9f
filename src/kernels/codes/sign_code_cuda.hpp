// Sign codes (sign_code.hpp) made on a GPU, with the bytes that the CPU makes.
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// f32 rows to codes without gaps, whose norms are |r|^2 until launch_write_code_norms moves them. `codec`: of device
// memory. Enqueues.
void launch_encode_signs(const CodecView& codec, const float* rows, int64_t stride, int64_t count, uint8_t* codes,
                         cudaStream_t stream);

}  // namespace kith
