// Rows of bytes against a query's weights with ARM's USDOT, which takes bytes as they are: it came with the matrix
// products of bytes.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_ARM)

#include "kernels/lists/weighted_bytes_dotprod-inl.hpp"

namespace kith {
namespace {

struct MixedDot {
  static constexpr int32_t kZero = 0;
  using Bytes = uint8x16_t;
  static Bytes load(const uint8_t* from) { return vld1q_u8(from); }
  static Bytes of(uint8x16_t small) { return small; }
  static int32x4_t add(int32x4_t sum, Bytes x, int8x16_t w) { return vusdotq_s32(sum, x, w); }
};

}  // namespace

void scan_weighted_bytes_mmla(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  scan_all_queries<MixedDot>(rows, first, queries, query_count);
}

}  // namespace kith

#endif
