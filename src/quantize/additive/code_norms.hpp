// The norms behind additive codes, on the CPU: of the vectors that they stand for (kernels/codes/code_norm.hpp).
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cstdint>

namespace kith {

// Canonical squared norms, rounded to f32, of `count` decoded vectors with a centre added, where there is one.
void decoded_norms(const CodecView& codec, const uint8_t* codes, int64_t count, const float* centre, float* norms);

// Writes them behind their codes.
void write_code_norms(const CodecView& codec, uint8_t* codes, int64_t count, const float* centre);

}  // namespace kith
