#include "io/hdf5/lzf.hpp"

#include <algorithm>

namespace kith {

// A byte below 32 is followed by so many plain bytes and one more. Another holds the length of a copy in its upper
// three bits (7: a byte with the rest of it follows) and with the byte behind it how far back the copy begins.
int64_t unpack_lzf(std::span<const std::byte> packed, std::span<std::byte> out) {
  constexpr size_t kPlainBelow = 32;
  constexpr size_t kLongCopy = 7;
  size_t in = 0;
  size_t made = 0;
  const auto next = [&] { return std::to_integer<size_t>(packed[in++]); };
  while (in < packed.size()) {
    const size_t control = next();
    if (control < kPlainBelow) {
      const size_t count = control + 1;
      if (count > packed.size() - in || count > out.size() - made) return -1;
      std::copy_n(packed.begin() + static_cast<std::ptrdiff_t>(in), count,
                  out.begin() + static_cast<std::ptrdiff_t>(made));
      in += count;
      made += count;
      continue;
    }
    size_t count = control >> 5;
    if (packed.size() - in < (count == kLongCopy ? 2U : 1U)) return -1;
    if (count == kLongCopy) count += next();
    count += 2;
    const size_t back = ((control & 0x1f) << 8 | next()) + 1;
    if (back > made || count > out.size() - made) return -1;
    for (size_t i = 0; i < count; ++i, ++made) out[made] = out[made - back];  // byte by byte: it may repeat itself
  }
  return static_cast<int64_t>(made);
}

}  // namespace kith
