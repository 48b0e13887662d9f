#include "kernels/panels/rounded_panels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panels/rounded_panels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/panels/instruction_family.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using Vec = hn::Vec<F32>;
constexpr int64_t kFloats = hn::MaxLanes(F32());
static_assert(kFloats % 4 == 0, "bytes are stored in words of four columns, which a vector must fill");

// Below this squares lose their digits; such a vector is rounded to nothing.
constexpr float kSmallestLargest = 1e-15f;
// Added to a small number it leaves a whole one, which the low bits of the sum hold.
constexpr float kWhole = 0x1.8p23f;

// Lanes from `count` on are zero.
HWY_INLINE Vec load(const float* from, int64_t count) {
  if (HWY_LIKELY(count >= kFloats)) return hn::LoadU(F32(), from);
  HWY_ALIGN float values[kFloats] = {};
  std::copy(from, from + count, values);
  return hn::Load(F32(), values);
}

// By the bits, of which those of a NaN are the largest.
HWY_INLINE float largest_magnitude(const float* vector, int64_t cols) {
  const I32 d;
  auto largest = hn::Zero(d);
  for (int64_t c = 0; c < cols; c += kFloats) {
    largest = hn::Max(largest, hn::BitCast(d, hn::Abs(load(vector + c, cols - c))));
  }
  const int32_t bits = hn::GetLane(hn::MaxOfLanes(d, largest));
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// All in f32: the residual has room for the rounding of each difference (a 2^-24th of 127 steps) and of the sum.
RoundedVector RoundToBytes(const float* vector, int64_t cols, int64_t width, uint32_t flip, int8_t* out) {
  const F32 d;
  const float largest = largest_magnitude(vector, cols);
  const bool tiny = !(largest >= kSmallestLargest);  // or NaN
  const float scale = tiny ? 0.0f : largest / 127;
  const Vec step = hn::Set(d, scale);
  const Vec inverse = hn::Set(d, tiny ? 0.0f : 127 / largest);
  const Vec whole = hn::Set(d, kWhole);
  Vec squares = hn::Zero(d);
  Vec sums = hn::Zero(d);  // whole numbers, 127 for each column of a lane at most: exact
  const int64_t words = (cols + 3) / 4;
  for (int64_t c = 0; c < cols; c += kFloats) {
    const Vec values = load(vector + c, cols - c);
    const Vec moved = hn::MulAdd(values, inverse, whole);
    const Vec rounded = hn::Sub(moved, whole);
    const Vec lost = hn::NegMulAdd(step, rounded, values);
    squares = hn::MulAdd(lost, lost, squares);
    sums = hn::Add(sums, rounded);
    HWY_ALIGN uint8_t stored[hn::MaxLanes(F32())];
    const hn::Rebind<uint8_t, F32> bytes;
    hn::Store(hn::TruncateTo(bytes, hn::BitCast(U32(), moved)), bytes, stored);
    const int64_t count = std::min(kFloats / 4, words - c / 4);
    for (int64_t word = 0; word < count; ++word) {
      uint32_t four;
      std::memcpy(&four, stored + 4 * word, sizeof four);
      four ^= flip;
      std::memcpy(out + (c / 4 + word) * width * 4, &four, sizeof four);
    }
  }
  const double length = std::sqrt(static_cast<double>(cols));
  const double missing = std::sqrt(static_cast<double>(hn::GetLane(hn::SumOfLanes(d, squares))));
  const double residual = missing * (1 + 0x1p-9) + length * static_cast<double>(tiny ? largest : scale * 0x1p-16f);
  const float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  return {scale, static_cast<float>(residual), std::isfinite(sum) ? static_cast<int32_t>(sum) : 0};
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(RoundToBytes);

RoundedVector round_to_bytes(const float* vector, int64_t cols, int64_t width, uint32_t flip, int8_t* out) {
  return HWY_DYNAMIC_DISPATCH(RoundToBytes)(vector, cols, width, flip, out);
}

RoundedVector round_row(const float* row, int64_t cols, int64_t width, int8_t* out) {
  return round_to_bytes(row, cols, width, 0, out);
}

RoundedVector round_query(const float* query, int64_t cols, int64_t width, int8_t* out) {
  const bool adds_128 = panel_shape(PanelFormat::rounded).signed_bytes;
  return round_to_bytes(query, cols, width, adds_128 ? 0x80808080u : 0, out);
}

void scan_rounded_panels([[maybe_unused]] const RoundedQueries& queries, [[maybe_unused]] const RoundedBase& base,
                         [[maybe_unused]] int64_t first, [[maybe_unused]] int64_t count,
                         [[maybe_unused]] PanelHits& hits) {
#if defined(KITH_X86)
  scan_rounded_vnni(queries, base, first, count, hits);
#elif defined(KITH_ARM)
  scan_rounded_dotprod(queries, base, first, count, hits);
#endif
}

}  // namespace kith
#endif
