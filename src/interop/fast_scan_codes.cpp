#include "interop/fast_scan_codes.hpp"

namespace kith {
namespace {

constexpr int64_t kGroup = 32;
constexpr int64_t kHalf = 16;

}  // namespace

void unpack_fast_scan(const FastScanLayout& layout, const uint8_t* blocks, int64_t rows, uint8_t* codes) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t in_block = row % layout.block_rows;
    const int64_t in_group = in_block % kGroup;
    const int64_t low = in_group % kHalf;
    const int64_t byte = low < kHalf / 2 ? 2 * low : 2 * (low - kHalf / 2) + 1;
    const int shift = in_group < kHalf ? 0 : 4;
    const uint8_t* from = blocks + row / layout.block_rows * layout.block_bytes() + in_block / kGroup * kGroup + byte;
    uint8_t* const code = codes + row * layout.code_bytes();
    for (int64_t pair = 0; pair < layout.pairs(); ++pair, from += layout.block_rows) {
      const int first = from[0] >> shift & 15;
      const int second = 2 * pair + 1 < layout.parts ? from[kHalf] >> shift & 15 : 0;
      code[pair] = static_cast<uint8_t>(first | second << 4);
    }
  }
}

}  // namespace kith
