// Vectors of product codes put together from rounded codewords, for the files of instruction families that multiply
// them: always inlined, so that each compiles it for its own instructions.
#pragma once

#include "kernels/lists/list_tiles.hpp"

#include <cstdint>
#include <cstring>

namespace kith {

template <int64_t kBytes>
[[gnu::always_inline]] inline void copy_rounded_words(const CodeFormat& format, const uint16_t* values,
                                                      const uint8_t* code, uint8_t* out) {
  const int64_t table = format.codewords() * kBytes;
  const auto* from = reinterpret_cast<const uint8_t*>(values);
  for (int64_t p = 0; p < format.parts; ++p, from += table, out += kBytes) {
    const int64_t word = format.bits == 8 ? code[p] : sub_code(code, p, format.bits);
    std::memcpy(out, from + word * kBytes, kBytes);
  }
}

// Four sums that do not wait for each other.
[[gnu::always_inline]] inline float sum_word_squares(const CodeFormat& format, const float* squares,
                                                     const uint8_t* code) {
  const int64_t codewords = format.codewords();
  float sum[4] = {};
  int64_t p = 0;
  if (format.bits == 8) {
    for (; p + 4 <= format.parts; p += 4) {
      for (int64_t j = 0; j < 4; ++j) sum[j] += squares[(p + j) * codewords + code[p + j]];
    }
  }
  for (; p < format.parts; ++p) sum[0] += squares[p * codewords + sub_code(code, p, format.bits)];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

[[gnu::always_inline]] inline void gather_words(const CodeFormat& format, const RoundedWords& rounded,
                                                const uint8_t* codes, int64_t count, int64_t words, uint32_t* vectors,
                                                float* squares) {
  const int64_t bytes = format.bytes();
  const int64_t width = 2 * format.part_cols();  // bytes of a codeword
  const int64_t codewords = format.codewords();
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* const code = codes + i * bytes;
    auto* const out = reinterpret_cast<uint8_t*>(vectors + i * words);
    switch (width) {
      case 4: copy_rounded_words<4>(format, rounded.values, code, out); break;
      case 8: copy_rounded_words<8>(format, rounded.values, code, out); break;
      case 16: copy_rounded_words<16>(format, rounded.values, code, out); break;
      case 32: copy_rounded_words<32>(format, rounded.values, code, out); break;
      default:
        for (int64_t p = 0; p < format.parts; ++p) {
          std::memcpy(out + p * width,
                      reinterpret_cast<const uint8_t*>(rounded.values) +
                          (p * codewords + sub_code(code, p, format.bits)) * width,
                      static_cast<size_t>(width));
        }
    }
    std::memset(out + width * format.parts, 0, static_cast<size_t>(4 * words - width * format.parts));
    squares[i] = sum_word_squares(format, rounded.squares, code);
  }
}

}  // namespace kith
