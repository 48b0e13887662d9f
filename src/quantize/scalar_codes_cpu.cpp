#include "quantize/scalar_codes_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/scalar_codes_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/codes/scalar_code.hpp"
#include "rows/load_cpu-inl.hpp"

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
HWY_EXPORT(WidenRanges);

void encode_scalar_cpu(const CodeFormat& format, const float* leasts, const float* spans, const float* rows,
                       int64_t stride, int64_t count, uint8_t* codes, uint8_t* scratch) {
  HWY_DYNAMIC_DISPATCH(EncodeScalar)(format, leasts, spans, rows, stride, count, codes, scratch);
}

void widen_ranges_cpu(const float* rows, int64_t stride, int64_t count, int64_t cols, float* leasts, float* largests) {
  HWY_DYNAMIC_DISPATCH(WidenRanges)(rows, stride, count, cols, leasts, largests);
}

}  // namespace kith
#endif
