// Decodes product codes to bf16 by concatenating rounded codewords. Always inlined, so that each file of an instruction
// family compiles it for its own target.
#pragma once

#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/lists/code_tables.hpp"
#include "kernels/lists/list_tiles.hpp"

#include <cstdint>
#include <cstring>

namespace kith {

[[gnu::always_inline]] inline void gather_words(const CodeFormat& format, const RoundedWords& rounded,
                                                const uint8_t* codes, int64_t count, int64_t words, uint32_t* vectors,
                                                float* squares) {
  const int64_t width = 2 * format.part_cols();  // bytes of a codeword
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* const code = codes + i * format.bytes();
    auto* const out = reinterpret_cast<uint8_t*>(vectors + i * words);
    copy_codewords_of(format, rounded.values, width, code, out);
    std::memset(out + width * format.parts, 0, static_cast<size_t>(4 * words - width * format.parts));
    squares[i] = sum_code_tables(format, rounded.squares, code);
  }
}

}  // namespace kith
