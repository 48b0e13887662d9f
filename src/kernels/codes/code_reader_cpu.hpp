// The reader of codes on the CPU: the vectors that they stand for, decode(code), or centre + decode(code) with
// one f32 addition a value.
//
// Cost: about a load, an addition and a store for each vector register of values.
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cstdint>

namespace kith {

// `count` vectors, one after the other. `centre` is null where codes are not of residuals.
void decode_rows_cpu(const CodecView& codec, const uint8_t* codes, int64_t count, const float* centre, float* out);

}  // namespace kith
