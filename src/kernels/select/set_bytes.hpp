// Which of many passed a test: few do, and which cannot be predicted, so all are tested at once, without branches, to a byte
// each, and the bytes that are set are looked for eight at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace kith {

// Calls body(i) for each nonzero byte, of which there are few; the array is zero-padded to a multiple of eight.
template <typename Body>
void for_each_set(const uint8_t* bytes, int64_t count, const Body& body) {
  static_assert(std::endian::native == std::endian::little);
  for (int64_t eight = 0; eight < count; eight += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + eight, sizeof word);
    while (word != 0) {
      const int64_t i = eight + std::countr_zero(word) / 8;
      word &= ~(uint64_t{0xFF} << (i - eight) * 8);
      body(i);
    }
  }
}

}  // namespace kith
