#include "kernels/codes/sub_codes.hpp"

#include <algorithm>

namespace kith {

void pack_sub_codes(const uint8_t* sub_codes, int64_t count, int bits, uint8_t* code) {
  if (bits == 8) {
    std::copy_n(sub_codes, count, code);
  } else if (bits == 4) {
    for (int64_t i = 0; i < count / 2; ++i) {
      code[i] = static_cast<uint8_t>(sub_codes[2 * i] | sub_codes[2 * i + 1] << 4);
    }
    if (count % 2 != 0) code[count / 2] = sub_codes[count - 1];
  } else {
    uint32_t word = 0;
    int held = 0;
    for (int64_t i = 0; i < count; ++i) {
      word |= static_cast<uint32_t>(sub_codes[i]) << held;
      held += bits;
      if (held < 8) continue;
      *code++ = static_cast<uint8_t>(word);
      word >>= 8;
      held -= 8;
    }
    if (held > 0) *code = static_cast<uint8_t>(word);
  }
}

void unpack_sub_codes(const uint8_t* code, int64_t count, int bits, uint8_t* sub_codes) {
  if (bits == 8) {
    std::copy_n(code, count, sub_codes);
  } else if (bits == 4) {
    for (int64_t i = 0; i < count / 2; ++i) {
      sub_codes[2 * i] = code[i] & 15;
      sub_codes[2 * i + 1] = static_cast<uint8_t>(code[i] >> 4);
    }
    if (count % 2 != 0) sub_codes[count - 1] = code[count / 2] & 15;
  } else {
    for (int64_t i = 0; i < count; ++i) sub_codes[i] = static_cast<uint8_t>(sub_code(code, i, bits));
  }
}

}  // namespace kith
