#include "quantize/scalar_codes_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/scalar_codes_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "quantize/scalar_code.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I32 = hn::ScalableTag<int32_t>;
constexpr int64_t kFloats = hn::MaxLanes(F32());

// scalar_code of each value of a row, one a byte.
template <bool kCorrects>
HWY_INLINE void quantize_row(const float* row, const float* leasts, const float* spans, int64_t cols, int bits,
                             uint8_t* out) {
  const F32 d;
  const I32 di;
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(d, 1.0f);
  const auto levels = hn::Set(d, static_cast<float>(scalar_levels(bits)));
  int64_t c = 0;
  for (; c + kFloats <= cols; c += kFloats) {
    const auto span = hn::LoadU(d, spans + c);
    auto t = hn::Div(hn::Sub(hn::LoadU(d, row + c), hn::LoadU(d, leasts + c)), span);
    t = hn::IfThenElseZero(hn::And(hn::Gt(t, zero), hn::Ne(span, zero)), hn::Min(t, one));
    auto code = hn::ConvertTo(di, hn::Mul(t, levels));
    if constexpr (kCorrects) {
      const auto whole = hn::ConvertTo(d, code);
      const auto above = hn::Lt(hn::Sub(hn::Mul(t, hn::Add(levels, one)), whole), t);
      const auto lower = hn::And(hn::RebindMask(di, above), hn::Gt(code, hn::Zero(di)));
      code = hn::Sub(code, hn::IfThenElseZero(lower, hn::Set(di, 1)));
    }
    hn::StoreU(hn::DemoteTo(hn::Rebind<uint8_t, F32>(), code), hn::Rebind<uint8_t, F32>(), out + c);
  }
  for (; c < cols; ++c) out[c] = static_cast<uint8_t>(scalar_code(row[c], leasts[c], spans[c], bits));
}

void EncodeScalar(const CodeFormat& format, const float* leasts, const float* spans, const float* rows, int64_t stride,
                  int64_t count, uint8_t* codes, uint8_t* scratch) {
  const int64_t bytes = format.bytes();
  for (int64_t i = 0; i < count; ++i, codes += bytes) {
    if (format.bits == 8) {
      quantize_row<false>(rows + i * stride, leasts, spans, format.cols, 8, codes);
    } else {
      quantize_row<true>(rows + i * stride, leasts, spans, format.cols, format.bits, scratch);
      pack_sub_codes(scratch, format.cols, format.bits, codes);
    }
  }
}

// fma(code, step, base) of each: one rounding, also where the instruction set has no such instruction.
HWY_INLINE void dequantize_row(const uint8_t* codes, const float* steps, const float* bases, int64_t cols, float* out) {
  [[maybe_unused]] const F32 d;
  int64_t c = 0;
#if HWY_NATIVE_FMA
  for (; c + kFloats <= cols; c += kFloats) {
    hn::StoreU(hn::MulAdd(load_floats(codes + c), hn::LoadU(d, steps + c), hn::LoadU(d, bases + c)), d, out + c);
  }
#endif
  for (; c < cols; ++c) out[c] = std::fma(static_cast<float>(codes[c]), steps[c], bases[c]);
}

void DecodeScalar(const CodecView& codec, const uint8_t* codes, int64_t count, float* rows, int64_t stride,
                  uint8_t* scratch) {
  const CodeFormat& format = codec.format;
  const int64_t bytes = format.bytes();
  for (int64_t i = 0; i < count; ++i, codes += bytes) {
    if (format.bits != 8) unpack_sub_codes(codes, format.cols, format.bits, scratch);
    dequantize_row(format.bits == 8 ? codes : scratch, codec.steps, codec.bases, format.cols, rows + i * stride);
  }
}

HWY_INLINE void widen_range(const float* row, int64_t cols, float* leasts, float* largests) {
  const F32 d;
  int64_t c = 0;
  for (; c + kFloats <= cols; c += kFloats) {
    const auto value = hn::LoadU(d, row + c);
    const auto least = hn::LoadU(d, leasts + c);
    const auto largest = hn::LoadU(d, largests + c);
    hn::StoreU(hn::IfThenElse(hn::Lt(value, least), value, least), d, leasts + c);
    hn::StoreU(hn::IfThenElse(hn::Gt(value, largest), value, largest), d, largests + c);
  }
  for (; c < cols; ++c) {
    if (row[c] < leasts[c]) leasts[c] = row[c];
    if (row[c] > largests[c]) largests[c] = row[c];
  }
}

void WidenRanges(const float* rows, int64_t stride, int64_t count, int64_t cols, float* leasts, float* largests) {
  for (int64_t i = 0; i < count; ++i) widen_range(rows + i * stride, cols, leasts, largests);
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(EncodeScalar);
HWY_EXPORT(DecodeScalar);
HWY_EXPORT(WidenRanges);

void pack_sub_codes(const uint8_t* sub_codes, int64_t count, int bits, uint8_t* code) {
  if (bits == 8) {
    std::copy_n(sub_codes, count, code);
  } else if (bits == 4) {
    for (int64_t i = 0; i < count / 2; ++i) {
      code[i] = static_cast<uint8_t>(sub_codes[2 * i] | sub_codes[2 * i + 1] << 4);
    }
    if (count % 2 != 0) code[count / 2] = sub_codes[count - 1];
  } else {
    uint32_t word = 0;
    int held = 0;
    for (int64_t i = 0; i < count; ++i) {
      word |= static_cast<uint32_t>(sub_codes[i]) << held;
      held += bits;
      if (held < 8) continue;
      *code++ = static_cast<uint8_t>(word);
      word >>= 8;
      held -= 8;
    }
    if (held > 0) *code = static_cast<uint8_t>(word);
  }
}

void unpack_sub_codes(const uint8_t* code, int64_t count, int bits, uint8_t* sub_codes) {
  if (bits == 8) {
    std::copy_n(code, count, sub_codes);
  } else if (bits == 4) {
    for (int64_t i = 0; i < count / 2; ++i) {
      sub_codes[2 * i] = code[i] & 15;
      sub_codes[2 * i + 1] = static_cast<uint8_t>(code[i] >> 4);
    }
    if (count % 2 != 0) sub_codes[count - 1] = code[count / 2] & 15;
  } else {
    for (int64_t i = 0; i < count; ++i) sub_codes[i] = static_cast<uint8_t>(sub_code(code, i, bits));
  }
}

void encode_scalar_cpu(const CodeFormat& format, const float* leasts, const float* spans, const float* rows,
                       int64_t stride, int64_t count, uint8_t* codes, uint8_t* scratch) {
  HWY_DYNAMIC_DISPATCH(EncodeScalar)(format, leasts, spans, rows, stride, count, codes, scratch);
}

void decode_scalar_cpu(const CodecView& codec, const uint8_t* codes, int64_t count, float* rows, int64_t stride,
                       uint8_t* scratch) {
  HWY_DYNAMIC_DISPATCH(DecodeScalar)(codec, codes, count, rows, stride, scratch);
}

void widen_ranges_cpu(const float* rows, int64_t stride, int64_t count, int64_t cols, float* leasts, float* largests) {
  HWY_DYNAMIC_DISPATCH(WidenRanges)(rows, stride, count, cols, leasts, largests);
}

}  // namespace kith
#endif
