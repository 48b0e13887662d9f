// Rows of bytes against a query's weights with ARM's SDOT, which takes bytes with a sign.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_ARM)

#include "kernels/lists/weighted_bytes_dotprod-inl.hpp"

namespace kith {
namespace {

struct SignedDot {
  static constexpr int32_t kZero = 128;
  using Bytes = int8x16_t;
  static Bytes load(const uint8_t* from) { return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from), vdupq_n_u8(0x80))); }
  static Bytes of(uint8x16_t small) { return vreinterpretq_s8_u8(small); }
  static int32x4_t add(int32x4_t sum, Bytes x, int8x16_t w) { return vdotq_s32(sum, x, w); }
};

}  // namespace

void scan_weighted_bytes_dotprod(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  scan_all_queries<SignedDot>(rows, first, queries, query_count);
}

}  // namespace kith

#endif
