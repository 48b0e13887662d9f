// The sub-codes of a vector, one a byte, as the code that holds them (code_format.hpp), and back. 1 to 8 bits.
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cstdint>

namespace kith {

void pack_sub_codes(const uint8_t* sub_codes, int64_t count, int bits, uint8_t* code);
void unpack_sub_codes(const uint8_t* code, int64_t count, int bits, uint8_t* sub_codes);

}  // namespace kith
