// Vectors as panels take them, by vectors: moved, scaled, rounded, and put side by side. Packing rows for one search
// would take longer than the search where this is slow.
#include "kernels/panels/panel_packing.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panels/panel_packing.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/half.hpp"
#include "core/scratch_layout.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/to_floats_cpu-inl.hpp"
#include "kernels/panels/rounded_panels.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using Vec = hn::Vec<F32>;
constexpr int64_t kFloats = hn::MaxLanes(F32());
static_assert(kFloats % 4 == 0, "bytes are stored in words of four columns, which a vector must fill");

// Below this squares lose their digits; such a vector is rounded to nothing.
constexpr float kSmallestLargest = 1e-15f;
// Added to a small number it leaves a whole one, which the low bits of the sum hold.
constexpr float kWhole = 0x1.8p23f;

// By the bits, of which those of a NaN are the largest.
HWY_INLINE float largest_magnitude(const float* vector, int64_t cols) {
  const I32 d;
  auto largest = hn::Zero(d);
  for (int64_t c = 0; c < cols; c += kFloats) {
    largest = hn::Max(largest, hn::BitCast(d, hn::Abs(load_padded(vector + c, cols - c))));
  }
  const int32_t bits = hn::GetLane(hn::MaxOfLanes(d, largest));
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// All in f32: the residual has room for the rounding of each difference (a 2^-24th of 127 steps) and of the sum.
RoundedVector RoundToBytes(const float* vector, int64_t cols, int64_t width, const ByteForm& form, int8_t* out) {
  const F32 d;
  const float largest = largest_magnitude(vector, cols);
  const bool tiny = !(largest >= kSmallestLargest);  // or NaN
  const auto most = static_cast<float>(form.largest);
  const float scale = tiny ? 0.0f : largest / most;
  const Vec step = hn::Set(d, scale);
  const Vec inverse = hn::Set(d, tiny ? 0.0f : most / largest);
  const Vec whole = hn::Set(d, kWhole);
  const auto added = hn::Set(U32(), static_cast<uint32_t>(form.added));
  Vec squares = hn::Zero(d);
  Vec sums = hn::Zero(d);  // whole numbers, 127 for each column of a lane at most: exact
  const int64_t words = (cols + 3) / 4;
  for (int64_t c = 0; c < cols; c += kFloats) {
    const Vec values = load_padded(vector + c, cols - c);
    const Vec moved = hn::MulAdd(values, inverse, whole);
    const Vec rounded = hn::Sub(moved, whole);
    const Vec lost = hn::NegMulAdd(step, rounded, values);
    squares = hn::MulAdd(lost, lost, squares);
    sums = hn::Add(sums, rounded);
    HWY_ALIGN uint8_t stored[kFloats];
    const hn::Rebind<uint8_t, F32> bytes;
    hn::Store(hn::TruncateTo(bytes, hn::Add(hn::BitCast(U32(), moved), added)), bytes, stored);
    const int64_t count = std::min(kFloats / 4, words - c / 4);
    for (int64_t word = 0; word < count; ++word) {
      uint32_t four;
      std::memcpy(&four, stored + 4 * word, sizeof four);
      std::memcpy(out + (c / 4 + word) * width * 4, &four, sizeof four);
    }
  }
  const double length = std::sqrt(static_cast<double>(cols));
  const double missing = std::sqrt(static_cast<double>(hn::GetLane(hn::SumOfLanes(d, squares))));
  const double residual = missing * (1 + 0x1p-9) + length * static_cast<double>(tiny ? largest : scale * 0x1p-16f);
  const float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  return {scale, static_cast<float>(residual), std::isfinite(sum) ? static_cast<int32_t>(sum) : 0};
}

// To nearest, ties to even, in the upper half. What a NaN becomes does not matter: nothing is claimed of such rows.
HWY_INLINE hn::Vec<U32> bf16_above(Vec values) {
  const U32 d;
  const auto bits = hn::BitCast(d, values);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
  return hn::And(hn::Add(hn::Add(bits, hn::Set(d, 0x7FFFu)), odd), hn::Set(d, 0xFFFF0000u));
}

// Values and what their rounding leaves, rounded: two to a unit, the first below. Returns how many values were taken,
// which are whole vectors.
int64_t EncodeBf16(const float* values, int64_t cols, float scale, uint32_t* high, uint32_t* low) {
  int64_t c = 0;
  const F32 d;
  const auto times = hn::Set(d, scale);
  for (; c + 2 * kFloats <= cols; c += 2 * kFloats) {
    Vec first;
    Vec second;
    hn::LoadInterleaved2(d, values + c, first, second);
    first = hn::Mul(first, times);
    second = hn::Mul(second, times);
    const auto a = bf16_above(first);
    const auto b = bf16_above(second);
    const auto rest_a = bf16_above(hn::Sub(first, hn::BitCast(d, a)));
    const auto rest_b = bf16_above(hn::Sub(second, hn::BitCast(d, b)));
    hn::StoreU(hn::Or(hn::ShiftRight<16>(a), b), U32(), high + c / 2);
    hn::StoreU(hn::Or(hn::ShiftRight<16>(rest_a), rest_b), U32(), low + c / 2);
  }
  return c;
}

// Whole vectors, of which it returns how many values they hold.
int64_t MoveFloats(const float* values, const float* origin, int64_t cols, float scale, float* out) {
  const F32 d;
  const auto times = hn::Set(d, scale);
  int64_t c = 0;
  for (; c + kFloats <= cols; c += kFloats) {
    hn::StoreU(hn::Mul(hn::Sub(hn::LoadU(d, values + c), hn::LoadU(d, origin + c)), times), d, out + c);
  }
  return c;
}

// Rounded once; whole vectors, of which it returns how many values they hold.
int64_t ScaleVector(const float* vector, int64_t cols, double scale, float* out) {
  const F64 d;
  const hn::Rebind<float, F64> floats;
  constexpr int64_t kDoubles = hn::MaxLanes(F64());
  const auto times = hn::Set(d, scale);
  int64_t c = 0;
  for (; c + kDoubles <= cols; c += kDoubles) {
    hn::StoreU(to_floats(hn::Mul(load_doubles(vector + c), times)), floats, out + c);
  }
  return c;
}

// Loads four values each of rows at a distance of 4 * stride, one row per block of a register.
template <typename D>
HWY_INLINE hn::Vec<D> load_fours(D d, const float* rows, int64_t stride) {
  constexpr int64_t kHalf = hn::MaxLanes(D()) / 2;
  if constexpr (2 * kHalf <= 4) {
    return hn::LoadU(d, rows);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_fours(half, rows + kHalf * stride, stride), load_fours(half, rows, stride));
  }
}

// Four columns of kFloats rows, each in a register.
HWY_INLINE void transpose_fours(const float* rows, int64_t stride, int64_t width, float* out) {
  const F32 d;
  const hn::Repartition<double, F32> pairs;
  const Vec a = load_fours(d, rows, stride);
  const Vec b = load_fours(d, rows + stride, stride);
  const Vec e = load_fours(d, rows + 2 * stride, stride);
  const Vec f = load_fours(d, rows + 3 * stride, stride);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ef_low = hn::BitCast(pairs, hn::InterleaveLower(d, e, f));
  const auto ef_high = hn::BitCast(pairs, hn::InterleaveUpper(d, e, f));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ef_low)), d, out);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ef_low)), d, out + width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ef_high)), d, out + 2 * width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ef_high)), d, out + 3 * width);
}

// Rows side by side, by blocks of kFloats rows and four columns, the last of which begin where they end with the rows
// and columns. False where there are fewer.
bool PackRows(const float* rows, int64_t stride, int64_t count, int64_t cols, int64_t width, float* out) {
  if (count < kFloats || cols < 4) return false;
  for (int64_t i = 0; i < count; i += kFloats) {
    const int64_t row = std::min(i, count - kFloats);
    for (int64_t c = 0; c < cols; c += 4) {
      const int64_t col = std::min(c, cols - 4);
      transpose_fours(rows + row * stride + col, stride, width, out + col * width + row);
    }
  }
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(EncodeBf16);
HWY_EXPORT(MoveFloats);
HWY_EXPORT(PackRows);
HWY_EXPORT(RoundToBytes);
HWY_EXPORT(ScaleVector);

namespace {

uint32_t bf16_above(float value) {
  const uint32_t bits = bits_of_float(value);
  return (bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u;
}

// A unit of either part.
void encode_pair(float first, float second, uint32_t* high, uint32_t* low) {
  const uint32_t a = bf16_above(first);
  const uint32_t b = bf16_above(second);
  *high = a >> 16 | b;
  *low = bf16_above(first - float_of_bits(a)) >> 16 | bf16_above(second - float_of_bits(b));
}

// Each product rounded once; out may be the vector.
void scale_vector(const float* vector, int64_t cols, double scale, float* out) {
  for (int64_t c = HWY_DYNAMIC_DISPATCH(ScaleVector)(vector, cols, scale, out); c < cols; ++c) {
    out[c] = static_cast<float>(vector[c] * scale);
  }
}

using Four = uint32_t __attribute__((vector_size(16)));
using Sixteen = uint8_t __attribute__((vector_size(16)));

template <typename Vector>
Vector load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

// Four units of four rows.
template <typename Unit>
void transpose_four(const Unit* rows, int64_t stride, int64_t width, Unit* out) {
  const auto a = load<Four>(rows);
  const auto b = load<Four>(rows + stride);
  const auto c = load<Four>(rows + 2 * stride);
  const auto d = load<Four>(rows + 3 * stride);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Four columns[] = {
      __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
      __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (int u = 0; u < 4; ++u) std::memcpy(out + u * width, &columns[u], sizeof(Four));
}

// Sixteen bytes of sixteen rows. Each round deals the first half of the vectors and the second half out in turn, like
// cards: after four of them rows and columns have changed places.
void transpose_sixteen(const uint8_t* rows, int64_t stride, int64_t width, uint8_t* out) {
  Sixteen from[16];
  Sixteen to[16];
  for (int i = 0; i < 16; ++i) from[i] = load<Sixteen>(rows + i * stride);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 8; ++i) {
      to[2 * i] = __builtin_shufflevector(from[i], from[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      to[2 * i + 1] =
          __builtin_shufflevector(from[i], from[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::swap(from, to);
  }
  for (int c = 0; c < 16; ++c) std::memcpy(out + c * width, &from[c], sizeof(Sixteen));
}

// Zeros behind the rows.
template <typename Unit>
void fill_behind(int64_t count, int64_t units, int64_t width, Unit* out) {
  if (count == width) return;
  for (int64_t u = 0; u < units; ++u) std::fill(out + u * width + count, out + (u + 1) * width, Unit{});
}

// Transposes kBlock x kBlock blocks of units. The last blocks are shifted back to end at the edge; inputs smaller than
// a block are copied one by one.
template <int64_t kBlock, typename Unit, typename Transpose>
void pack_blocks(const Unit* rows, int64_t stride, int64_t count, int64_t units, int64_t width, Unit* out,
                 const Transpose& transpose) {
  if (count >= kBlock && units >= kBlock) {
    for (int64_t u = 0; u < units; u += kBlock) {
      const int64_t unit = std::min(u, units - kBlock);
      for (int64_t i = 0; i < count; i += kBlock) {
        const int64_t row = std::min(i, count - kBlock);
        transpose(rows + row * stride + unit, stride, width, out + unit * width + row);
      }
    }
  } else {
    for (int64_t u = 0; u < units; ++u) {
      for (int64_t i = 0; i < count; ++i) out[u * width + i] = rows[i * stride + u];
    }
  }
  fill_behind(count, units, width, out);
}

}  // namespace

void encode_floats(PanelFormat format, const float* values, int64_t cols, float scale, uint32_t* out) {
  if (holds_f32(format)) {
    for (int64_t c = 0; c < cols; ++c) out[c] = bits_of_float(values[c] * scale);
    return;
  }
  const int64_t units = units_per_part(format, cols);
  uint32_t* const low = out + units;
  const int64_t done = HWY_DYNAMIC_DISPATCH(EncodeBf16)(values, cols, scale, out, low);
  for (int64_t u = done / 2; u < units; ++u) {
    const float first = 2 * u < cols ? values[2 * u] * scale : 0.0f;
    encode_pair(first, 2 * u + 1 < cols ? values[2 * u + 1] * scale : 0.0f, out + u, low + u);
  }
}

void move_floats(const float* values, const float* origin, int64_t cols, float scale, float* out) {
  for (int64_t c = HWY_DYNAMIC_DISPATCH(MoveFloats)(values, origin, cols, scale, out); c < cols; ++c) {
    out[c] = (values[c] - origin[c]) * scale;
  }
}

RoundedVector round_row(const float* row, int64_t cols, int64_t width, int8_t* out, int32_t added) {
  return HWY_DYNAMIC_DISPATCH(RoundToBytes)(row, cols, width, {127, added}, out);
}

RoundedVector round_query(const float* query, int64_t cols, int64_t width, int8_t* out) {
  return HWY_DYNAMIC_DISPATCH(RoundToBytes)(query, cols, width, rounded_query_form(), out);
}

void pack_units(const uint32_t* rows, int64_t stride, int64_t count, int64_t units, int64_t width, uint32_t* out) {
  // Units are moved by registers, whatever they are.
  if (HWY_DYNAMIC_DISPATCH(PackRows)(reinterpret_cast<const float*>(rows), stride, count, units, width,
                                     reinterpret_cast<float*>(out))) {
    return fill_behind(count, units, width, out);
  }
  pack_blocks<4>(rows, stride, count, units, width, out, transpose_four<uint32_t>);
}

void pack_units(const float* rows, int64_t stride, int64_t count, int64_t units, int64_t width, float* out) {
  if (HWY_DYNAMIC_DISPATCH(PackRows)(rows, stride, count, units, width, out)) {
    return fill_behind(count, units, width, out);
  }
  pack_blocks<4>(rows, stride, count, units, width, out, transpose_four<float>);
}

void pack_panel(PanelFormat format, int64_t cols, const void* vectors, int64_t count, int64_t width, void* out) {
  if (format == PanelFormat::bits) {
    return pack_blocks<16>(static_cast<const uint8_t*>(vectors), cols, count, cols, width, static_cast<uint8_t*>(out),
                           transpose_sixteen);
  }
  const int64_t units = units_per_part(format, cols);
  for (int64_t part = 0; part < parts_of(format); ++part) {
    pack_units(static_cast<const uint32_t*>(vectors) + part * units, units * parts_of(format), count, units, width,
               static_cast<uint32_t*>(out) + part * width * units);
  }
}

double move_vector(KeyKind kind, std::span<const float> origin, const float* vector, float* out) {
  const auto cols = static_cast<int64_t>(origin.size());
  if (has_differences(kind)) {
    for (int64_t c = 0; c < cols; ++c) out[c] = vector[c] - origin[static_cast<size_t>(c)];
    return canonical_squared_norm_cpu(out, cols);
  }
  const double squared = canonical_squared_norm_cpu(vector, cols);
  if (kind != KeyKind::cosine) {
    if (out != vector) std::copy_n(vector, cols, out);
    return squared;
  }
  const double inverse = canonical_inverse_norm(squared);
  scale_vector(vector, cols, inverse, out);
  return std::isfinite(squared) ? 1 : squared;
}

PanelScratch::PanelScratch(std::byte* memory, int64_t cols) {
  ScratchLayout layout;
  vector = layout.take<float>(cols).in(memory);
  const Slot<uint8_t> bytes = layout.take<uint8_t>(0, 64);
  packed_bytes = bytes.in(memory);
  packed = Slot<uint32_t>{bytes.offset, 0}.in(memory);
}

int64_t PanelScratch::bytes_for(PanelFormat format, int64_t cols, int64_t width) {
  ScratchLayout layout;
  layout.take<float>(cols);
  layout.take<uint8_t>(width * kith::packed_bytes(format, cols), 64);
  return layout.bytes;
}

}  // namespace kith
#endif
