#include "kernels/distance/packed_byte_rows.hpp"

#include "core/cpu_target.hpp"
#include "core/divide.hpp"
#include "core/within_limits.hpp"
#include "kernels/panels/instruction_family.hpp"

#include <algorithm>
#include <cstring>

namespace kith {

bool PackedByteRows::suits() {
#if defined(KITH_X86)
  return cpu_extensions().vnni;
#else
  return false;
#endif
}

PackedByteRows::PackedByteRows(ByteKeyKind kind, const ByteKeyRows& rows, int64_t count, const Resources& resources)
    : kind_(kind),
      stride_(rows.stride),
      words_(round_up(count, kTogether) * rows.stride / 4, "rows of bytes, packed", resources),
      terms_(round_up(count, kTogether), "rows of bytes, packed", resources) {
  if (counts_only(resources)) return;
  std::fill(words_.begin(), words_.end(), 0);
  std::fill(terms_.begin(), terms_.end(), 0);
  const int64_t units = stride_ / 4;
  for (int64_t i = 0; i < count; ++i) {
    const int8_t* const row = rows.data + i * stride_;
    int32_t* const to = words_.data() + i / kTogether * units * kTogether + i % kTogether;
    for (int64_t u = 0; u < units; ++u) std::memcpy(to + u * kTogether, row + 4 * u, 4);
    int32_t sum = 0;
    int32_t squares = 0;
    for (int64_t c = 0; c < stride_; ++c) {
      sum += row[c];
      squares += row[c] * row[c];
    }
    terms_[i] = kind == ByteKeyKind::squares ? squares + 256 * sum : 128 * sum;
  }
}

void PackedByteRows::keys(const int8_t* query, int64_t first, int64_t count, int32_t* keys) const {
#if defined(KITH_X86)
  packed_keys_vnni(kind_, query, stride_, words_.data() + first * stride_ / 4, terms_.data() + first,
                   round_up(count, kTogether), keys);
#else
  (void)query, (void)first, (void)count, (void)keys;
#endif
}

}  // namespace kith
