#include "kernels/panels/byte_product.hpp"

#include "kernels/panels/instruction_family.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr int32_t kShift = 128;

template <typename T>
ByteSums sums_of(const uint8_t* row, int64_t cols) {
  ByteSums sums;
  for (int64_t c = 0; c < cols; ++c) {
    const int32_t value = static_cast<T>(row[c]);
    sums.sum += value;
    sums.squares += value * value;
  }
  return sums;
}

}  // namespace

void encode_byte_row(PanelFormat format, const PanelShape& shape, const uint8_t* row, int64_t cols, int64_t padded,
                     uint8_t* out) {
  const uint8_t flip = shape.signed_bytes && format == PanelFormat::u8 ? 0x80 : 0;  // subtracts 128
  for (int64_t c = 0; c < cols; ++c) out[c] = row[c] ^ flip;
  std::fill(out + cols, out + padded, uint8_t{0});
}

void encode_byte_query(PanelFormat format, const PanelShape& shape, const float* query, int64_t cols, int64_t padded,
                       uint8_t* out) {
  const int32_t shift = shape.signed_bytes && format == PanelFormat::i8 ? kShift : 0;
  for (int64_t c = 0; c < cols; ++c) out[c] = static_cast<uint8_t>(static_cast<int32_t>(query[c]) + shift);
  std::fill(out + cols, out + padded, uint8_t{0});
}

ByteSums byte_sums(PanelFormat format, const uint8_t* row, int64_t cols) {
  return format == PanelFormat::i8 ? sums_of<int8_t>(row, cols) : sums_of<uint8_t>(row, cols);
}

int32_t byte_row_term(PanelFormat format, const PanelShape& shape, KeyKind kind, const ByteSums& row) {
  const int32_t scale = has_differences(kind) ? 2 : 1;
  const int32_t shifted = shape.signed_bytes && format == PanelFormat::i8 ? scale * kShift * row.sum : 0;
  return (has_differences(kind) ? row.squares : 0) + shifted;
}

int32_t byte_query_offset(PanelFormat format, const PanelShape& shape, KeyKind kind, const ByteSums& query) {
  const int32_t scale = has_differences(kind) ? 2 : 1;
  const int32_t shifted = shape.signed_bytes && format == PanelFormat::u8 ? scale * kShift * query.sum : 0;
  return (has_differences(kind) ? query.squares : 0) - shifted;
}

bool has_byte_product(int64_t cols, const CpuExtensions& cpu) {
#if defined(KITH_X86)
  if (cols <= kMostWordColumns) return true;
#endif
  return (cpu.dotprod || cpu.vnni || cpu.amx) && cols <= kMostByteColumns;
}

void scan_byte_panels(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                      BytePanelHits& hits) {
  if (base.format == PanelFormat::bits) return scan_bit_panels(queries, base, first, count, hits);
#if defined(KITH_X86)
  const CpuExtensions cpu = cpu_extensions();
  return cpu.amx    ? scan_bytes_amx(queries, base, first, count, hits)
         : cpu.vnni ? scan_bytes_vnni(queries, base, first, count, hits)
                    : scan_bytes_words(queries, base, first, count, hits);
#elif defined(KITH_ARM)
  return scan_bytes_dotprod(queries, base, first, count, hits);
#endif
}

}  // namespace kith
