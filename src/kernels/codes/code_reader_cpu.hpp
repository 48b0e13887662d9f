// The reader of codes on the CPU: the vectors that they stand for, decode(code), or centre + decode(code) with
// one f32 addition a value.
//
// Cost: about a load, an addition and a store for each vector register of values.
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cstdint>
#include <cstring>

namespace kith {

// `count` vectors, one after the other. `centre` is null where codes are not of residuals.
void decode_rows_cpu(const CodecView& codec, const uint8_t* codes, int64_t count, const float* centre, float* out);

// The sub-codes of a vector, one a byte, as the code that holds them (code_format.hpp), and back. 1 to 8 bits.
void pack_sub_codes(const uint8_t* sub_codes, int64_t count, int bits, uint8_t* code);
void unpack_sub_codes(const uint8_t* code, int64_t count, int bits, uint8_t* sub_codes);

// Concatenates the codewords of a product code: `words` has 2^bits codewords of `bytes` bytes for each part. kBytes:
// the same number at compile time, so that copying a codeword takes a few moves and no call; 0: known at run time.
// Always inlined, since files compiled for certain instruction sets call it.
template <int64_t kBytes = 0>
[[gnu::always_inline]] inline void copy_codewords(const CodeFormat& format, const void* words, int64_t bytes,
                                                  const uint8_t* code, void* out) {
  const int64_t width = kBytes > 0 ? kBytes : bytes;
  const int64_t table = format.codewords() * width;
  const auto* from = static_cast<const uint8_t*>(words);
  auto* to = static_cast<uint8_t*>(out);
  for (int64_t p = 0; p < format.parts; ++p, from += table, to += width) {
    const int64_t word = format.bits == 8 ? code[p] : sub_code(code, p, format.bits);
    std::memcpy(to, from + word * width, static_cast<size_t>(width));
  }
}

[[gnu::always_inline]] inline void copy_codewords_of(const CodeFormat& format, const void* words, int64_t bytes,
                                                     const uint8_t* code, void* out) {
  switch (bytes) {
    case 4: return copy_codewords<4>(format, words, bytes, code, out);
    case 8: return copy_codewords<8>(format, words, bytes, code, out);
    case 16: return copy_codewords<16>(format, words, bytes, code, out);
    case 32: return copy_codewords<32>(format, words, bytes, code, out);
    case 64: return copy_codewords<64>(format, words, bytes, code, out);
    default: return copy_codewords<0>(format, words, bytes, code, out);
  }
}

}  // namespace kith
