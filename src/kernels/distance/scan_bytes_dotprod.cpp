// Rows of bytes, u8 or i8, compared with a query of such, with ARM's UDOT and SDOT: sixteen products an instruction,
// four rows at a time, whose sums are then added in a tree that leaves one sum in each lane. Cost: two or three
// operations for 16 bytes of a row.
#include "core/cpu_target.hpp"
#include "kernels/distance/byte_keys_cpu.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_ARM)

#include <arm_neon.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int kRows = 4;
constexpr int64_t kBytes = 16;

struct DotSums {
  uint32x4_t values[kRows];
  uint32x4_t squares[kRows];
};

inline uint32x4_t dot_signed(uint32x4_t sum, uint8x16_t a, uint8x16_t b) {
  return vreinterpretq_u32_s32(vdotq_s32(vreinterpretq_s32_u32(sum), vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)));
}

template <DotKind kKind, bool kSigned>
inline void step(uint8x16_t q, uint8x16_t x, uint32x4_t& value, uint32x4_t& square) {
  if constexpr (kKind == DotKind::differences) {
    // A difference of signed bytes is at most 255 too, which the same bits hold.
    const uint8x16_t apart =
        kSigned ? vreinterpretq_u8_s8(vabdq_s8(vreinterpretq_s8_u8(q), vreinterpretq_s8_u8(x))) : vabdq_u8(q, x);
    value = vdotq_u32(value, apart, apart);
  } else if constexpr (kSigned) {
    value = dot_signed(value, q, x);
    if constexpr (kKind == DotKind::products_and_squares) square = dot_signed(square, x, x);
  } else {
    value = vdotq_u32(value, q, x);
    if constexpr (kKind == DotKind::products_and_squares) square = vdotq_u32(square, x, x);
  }
}

// All are below 2^31.
inline uint32x4_t add_integer_lanes(const uint32x4_t (&sums)[kRows]) {
  return vpaddq_u32(vpaddq_u32(sums[0], sums[1]), vpaddq_u32(sums[2], sums[3]));
}
inline float32x4_t add_lanes(const uint32x4_t (&sums)[kRows]) {
  return vcvtq_f32_s32(vreinterpretq_s32_u32(add_integer_lanes(sums)));
}

// The last bytes are read with those before them, which `mask` makes zero on both sides.
template <DotKind kKind, bool kSigned>
void scan_group(const uint8_t* query, const uint8_t* const (&rows)[kRows], int64_t cols, uint8x16_t mask,
                DotSums& sums) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sums.values[r] = sums.squares[r] = vdupq_n_u32(0);
  int64_t c = 0;
  for (; c + kBytes <= cols; c += kBytes) {
    const uint8x16_t q = vld1q_u8(query + c);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) step<kKind, kSigned>(q, vld1q_u8(rows[r] + c), sums.values[r], sums.squares[r]);
  }
  if (c == cols) return;
  const uint8x16_t q = vandq_u8(vld1q_u8(query + cols - kBytes), mask);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    step<kKind, kSigned>(q, vandq_u8(vld1q_u8(rows[r] + cols - kBytes), mask), sums.values[r], sums.squares[r]);
  }
}

uint8x16_t mask_of_last(int64_t cols) {
  alignas(16) uint8_t real[kBytes];
  for (int64_t i = 0; i < kBytes; ++i) real[i] = i >= kBytes - cols % kBytes ? 0xFF : 0;
  return vld1q_u8(real);
}

template <DotKind kKind, bool kSigned>
void scan(const uint8_t* query, float scale, const MatrixView& base, float* values, float* bound_sums) {
  const auto* const data = static_cast<const uint8_t*>(base.data());
  const uint8x16_t mask = mask_of_last(base.cols());
  for (int64_t first = 0; first < base.rows(); first += kRows) {
    const uint8_t* rows[kRows];
    for (int64_t r = 0; r < kRows; ++r) rows[r] = data + std::min(first + r, base.rows() - 1) * base.row_stride();
    DotSums sums;
    scan_group<kKind, kSigned>(query, rows, base.cols(), mask, sums);
    const float32x4_t products = vmulq_n_f32(add_lanes(sums.values), scale);
    const float32x4_t squares = add_lanes(sums.squares);
    if (first + kRows <= base.rows()) {
      vst1q_f32(values + first, products);
      if constexpr (kKind == DotKind::products_and_squares) vst1q_f32(bound_sums + first, squares);
      continue;
    }
    alignas(16) float some[2][kRows];
    vst1q_f32(some[0], products);
    vst1q_f32(some[1], squares);
    std::copy_n(some[0], base.rows() - first, values + first);
    if constexpr (kKind == DotKind::products_and_squares) std::copy_n(some[1], base.rows() - first, bound_sums + first);
  }
}

// Integer keys of rows at arbitrary addresses, in whole vectors.
template <DotKind kKind>
void gather_keys(const int8_t* query, const ByteKeyRows& rows, const uint32_t* numbers, int64_t count, int32_t* keys) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(query);
  const auto* const data = reinterpret_cast<const uint8_t*>(rows.data);
  for (int64_t first = 0; first < count; first += kRows) {
    const uint8_t* some[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      some[r] = data + static_cast<int64_t>(numbers[std::min(first + r, count - 1)]) * rows.stride;
    }
    uint32x4_t sums[kRows];
    uint32x4_t unused{};
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r] = vdupq_n_u32(0);
    for (int64_t c = 0; c < rows.stride; c += kBytes) {
      const uint8x16_t q = vld1q_u8(bytes + c);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) step<kKind, true>(q, vld1q_u8(some[r] + c), sums[r], unused);
    }
    const int32x4_t all = vreinterpretq_s32_u32(add_integer_lanes(sums));
    const int32x4_t found = kKind == DotKind::differences ? all : vnegq_s32(all);
    if (first + kRows <= count) {
      vst1q_s32(keys + first, found);
      continue;
    }
    alignas(16) int32_t last[kRows];
    vst1q_s32(last, found);
    std::copy_n(last, count - first, keys + first);
  }
}

}  // namespace

void byte_keys_dotprod(ByteKeyKind kind, const int8_t* query, const ByteKeyRows& rows, const uint32_t* numbers,
                       int64_t count, int32_t* keys) {
  if (kind == ByteKeyKind::squares) return gather_keys<DotKind::differences>(query, rows, numbers, count, keys);
  gather_keys<DotKind::products>(query, rows, numbers, count, keys);
}

bool has_byte_scan() { return cpu_extensions().dotprod; }

void scan_byte_rows_cpu(KeyKind kind, const uint8_t* query, float scale, const MatrixView& base, float* values,
                        float* bound_sums) {
  visit_dots(kind, bound_sums, [&](auto tag) {
    if (base.dtype() == DType::i8) return scan<tag.kind, true>(query, scale, base, values, bound_sums);
    scan<tag.kind, false>(query, scale, base, values, bound_sums);
  });
}

}  // namespace kith

#endif
