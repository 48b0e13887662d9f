// Rows of bytes, u8 or i8, compared with a query of such, with AVX-512's VNNI: bytes widened to 16 bits, products of
// which are added up in pairs. Sixteen sums at a time, of as many rows or of eight and their squares, are then added in
// a tree that leaves one in each lane. Cost: two or three operations for 32 bytes of a row, and three for a sum.
#include "core/cpu_target.hpp"
#include "kernels/distance/add_each_avx512-inl.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include <algorithm>

#define KITH_FOR_BYTE_SCAN KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

namespace kith {
namespace {

constexpr int kSums = kSumsTogether;
constexpr int64_t kVectorBytes = 32;

constexpr int rows_at_a_time(DotKind kind) { return kind == DotKind::products_and_squares ? kSums / 2 : kSums; }

// Loads up to 32 bytes, widened; masked-out bytes are not read.
template <bool kSigned>
KITH_FOR_BYTE_SCAN inline __m512i load_wide(const uint8_t* from, __mmask32 real) {
  const __m256i bytes = _mm256_maskz_loadu_epi8(real, from);
  return kSigned ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
}

// Accumulates up to 32 bytes of the query and of each row.
template <DotKind kKind, bool kSigned>
KITH_FOR_BYTE_SCAN inline void step(const uint8_t* query, const uint8_t* const* rows, int64_t at, __mmask32 real,
                                    __m512i (&sums)[kSums]) {
  constexpr int kRows = rows_at_a_time(kKind);
  const __m512i q = load_wide<kSigned>(query + at, real);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const __m512i x = load_wide<kSigned>(rows[r] + at, real);
    if constexpr (kKind == DotKind::differences) {
      const __m512i apart = _mm512_sub_epi16(q, x);
      sums[r] = _mm512_dpwssd_epi32(sums[r], apart, apart);
    } else {
      sums[r] = _mm512_dpwssd_epi32(sums[r], q, x);
      if constexpr (kKind == DotKind::products_and_squares) {
        sums[r + kRows] = _mm512_dpwssd_epi32(sums[r + kRows], x, x);
      }
    }
  }
}

template <DotKind kKind, bool kSigned>
KITH_FOR_BYTE_SCAN void scan(const uint8_t* query, float scale, const MatrixView& base, float* values,
                             float* bound_sums) {
  constexpr int kRows = rows_at_a_time(kKind);
  const auto* const data = static_cast<const uint8_t*>(base.data());
  const int64_t cols = base.cols();
  for (int64_t first = 0; first < base.rows(); first += kRows) {
    const int64_t count = std::min<int64_t>(kRows, base.rows() - first);
    const uint8_t* rows[kRows];
    for (int64_t r = 0; r < kRows; ++r) rows[r] = data + (first + std::min(r, count - 1)) * base.row_stride();
    __m512i sums[kSums];
#pragma GCC unroll 16
    for (auto& sum : sums) sum = _mm512_setzero_si512();
    int64_t at = 0;
    for (; at + kVectorBytes <= cols; at += kVectorBytes) step<kKind, kSigned>(query, rows, at, ~__mmask32{0}, sums);
    if (at < cols) {
      step<kKind, kSigned>(query, rows, at, static_cast<__mmask32>(~uint32_t{0} >> (kVectorBytes - (cols - at))), sums);
    }
    const __m512 all = _mm512_cvtepi32_ps(add_each(sums));
    const auto wanted = static_cast<__mmask16>((1u << count) - 1);
    _mm512_mask_storeu_ps(values + first, wanted, _mm512_mul_ps(all, _mm512_set1_ps(scale)));
    if constexpr (kKind == DotKind::products_and_squares) {
      // Not an extract: the compiler would join it with the store, and then lanes outside the mask fault.
      _mm512_mask_storeu_ps(bound_sums + first, wanted, _mm512_shuffle_f32x4(all, all, 0xee));
    }
  }
}

}  // namespace

bool has_byte_scan() { return cpu_extensions().vnni; }

void scan_byte_rows_cpu(KeyKind kind, const uint8_t* query, float scale, const MatrixView& base, float* values,
                        float* bound_sums) {
  visit_dots(kind, bound_sums, [&](auto tag) {
    if (base.dtype() == DType::i8) return scan<tag.kind, true>(query, scale, base, values, bound_sums);
    scan<tag.kind, false>(query, scale, base, values, bound_sums);
  });
}

}  // namespace kith

#elif !defined(KITH_ARM)

namespace kith {

bool has_byte_scan() { return false; }
void scan_byte_rows_cpu(KeyKind, const uint8_t*, float, const MatrixView&, float*, float*) {}

}  // namespace kith

#endif
