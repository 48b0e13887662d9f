#include "kernels/lists/weighted_bytes.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lists/weighted_bytes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/cpu_target.hpp"
#include "kernels/panels/instruction_family.hpp"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I16 = hn::CappedTag<int16_t, 16>;
using U8 = hn::Rebind<uint8_t, I16>;
using I32 = hn::Repartition<int32_t, I16>;
constexpr int64_t kStep = hn::MaxLanes(I16());
static_assert(kFewestWeightColumns % kStep == 0);
constexpr int kRows = 4;

HWY_INLINE void sum_rows(const uint8_t* const (&rows)[kRows], const int16_t* weights, int64_t cols,
                         int32_t (&sums)[kRows]) {
  const I16 d;
  hn::Vec<I32> even[kRows];
  hn::Vec<I32> odd[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) even[r] = odd[r] = hn::Zero(I32());
  const auto step = [&](int64_t from, int64_t c) HWY_ATTR {
    const auto w = hn::LoadU(d, weights + c);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto x = hn::PromoteTo(d, hn::LoadU(U8(), rows[r] + from));
      even[r] = hn::ReorderWidenMulAccumulate(I32(), x, w, even[r], odd[r]);
    }
  };
  const int64_t whole = cols / kFewestWeightColumns * kFewestWeightColumns;
  for (int64_t c = 0; c < whole; c += kStep) step(c, c);
  for (int64_t c = 0; whole < cols && c < kFewestWeightColumns; c += kStep) {  // the last ones, with some before them
    step(cols - kFewestWeightColumns + c, whole + c);
  }
  for (int r = 0; r < kRows; ++r) sums[r] = hn::GetLane(hn::SumOfLanes(I32(), hn::Add(even[r], odd[r])));
}

void ScanWeightedBytes(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  for (int64_t i = 0; i < rows.count; i += kRows) {
    const int64_t here = std::min<int64_t>(kRows, rows.count - i);
    const uint8_t* of[kRows];
    for (int r = 0; r < kRows; ++r) of[r] = rows.bytes + (i + (r < here ? r : 0)) * rows.stride;
    for (int64_t q = 0; q < query_count; ++q) {
      ByteRowsQuery& query = queries[q];
      int32_t sums[kRows];
      sum_rows(of, static_cast<const int16_t*>(query.weights.weights), rows.cols, sums);
      const int32_t shift = rows.zero * query.weights.sum;
      for (int64_t r = 0; r < here; ++r) {
        float value = query.constant + query.factor * static_cast<float>(sums[r] - shift);
        if (rows.scales != nullptr) value *= rows.scales[i + r];
        if (rows.terms != nullptr) value += rows.terms[i + r];
        const float least = rows.spreads == nullptr ? value : value - query.tilt * rows.spreads[i + r];
        query.values[query.found] = value;
        query.numbers[query.found] = first + static_cast<uint32_t>(i + r);
        query.found += !(least > query.limit);  // a NaN passes
      }
    }
  }
}

using F32 = hn::ScalableTag<float>;
constexpr int64_t kFloats = hn::MaxLanes(F32());
static_assert(kFewestWeightColumns % kFloats == 0);
// Added to a small number it leaves a whole one, which the low bits of the sum hold.
constexpr float kWholeFloat = 0x1.8p23f;

float LargestWeight(const float* values, int64_t padded) {
  const F32 d;
  auto largest = hn::Zero(d);
  for (int64_t c = 0; c < padded; c += kFloats) largest = hn::Max(largest, hn::Abs(hn::LoadU(d, values + c)));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// Whole vectors of values to weights, as planes or words, two vectors of f32 at a time, which are one of 16 bits. What
// is lost is measured in f32, with room for its roundings.
using Few = hn::CappedTag<float, 8>;
constexpr int64_t kFew = hn::MaxLanes(Few());
static_assert(kFewestWeightColumns % (2 * kFew) == 0);

void RoundWeights(const float* values, int64_t padded, bool planes, float inverse, ByteWeights& rounded, void* out) {
  const Few d;
  const hn::RebindToSigned<Few> di;
  const hn::Repartition<int16_t, Few> d16;
  const hn::Half<decltype(d16)> half16;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  const auto step = hn::Set(d, rounded.step);
  const auto times = hn::Set(d, inverse);
  const auto whole = hn::Set(d, kWholeFloat);
  const auto one = hn::Set(d16, 1);
  auto* const words = static_cast<int16_t*>(out);
  auto* const high = static_cast<int8_t*>(out);
  int8_t* const low = high + padded;
  auto squares = hn::Zero(d);
  auto more_squares = hn::Zero(d);
  auto sum = hn::Zero(di);
  auto more_sum = hn::Zero(di);
  auto high_sum = hn::Zero(di);
  auto more_high = hn::Zero(di);
  auto lows = hn::Zero(di);
  auto more_lows = hn::Zero(di);
  const auto near_of = [&](auto value, auto& lost_squares) HWY_ATTR {
    const auto near = hn::Sub(hn::MulAdd(value, times, whole), whole);
    const auto lost = hn::NegMulAdd(step, near, value);
    lost_squares = hn::MulAdd(lost, lost, lost_squares);
    return hn::DemoteTo(half16, hn::ConvertTo(di, near));
  };
  for (int64_t c = 0; c < padded; c += 2 * kFew) {
    const auto first = near_of(hn::LoadU(d, values + c), squares);
    const auto second = near_of(hn::LoadU(d, values + c + kFew), more_squares);
    const auto weight = hn::Combine(d16, second, first);
    sum = hn::ReorderWidenMulAccumulate(di, weight, one, sum, more_sum);
    if (!planes) {
      hn::StoreU(weight, d16, words + c);
      continue;
    }
    const auto upper = hn::ShiftRight<7>(hn::Add(weight, hn::Set(d16, 64)));
    const auto rest = hn::Sub(weight, hn::ShiftLeft<7>(upper));
    high_sum = hn::ReorderWidenMulAccumulate(di, upper, one, high_sum, more_high);
    lows = hn::ReorderWidenMulAccumulate(di, rest, rest, lows, more_lows);
    hn::StoreU(hn::DemoteTo(d8, upper), d8, high + c);
    hn::StoreU(hn::DemoteTo(d8, rest), d8, low + c);
  }
  const auto total = [&](auto some, auto more)
                         HWY_ATTR { return hn::GetLane(hn::SumOfLanes(di, hn::Add(some, more))); };
  rounded.sum = total(sum, more_sum);
  rounded.high_sum = total(high_sum, more_high);
  const float lost = hn::GetLane(hn::SumOfLanes(d, hn::Add(squares, more_squares)));
  rounded.moved_by = std::sqrt(static_cast<double>(lost));
  rounded.low = std::sqrt(static_cast<double>(total(lows, more_lows))) * 1.001;
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(ScanWeightedBytes);

HWY_EXPORT(LargestWeight);
HWY_EXPORT(RoundWeights);

namespace {

// Whether a CPU's kernel takes weights as two planes, and of a bit less.
bool takes_planes(const CpuExtensions& cpu) { return cpu.dotprod || cpu.vnni || cpu.avx2; }
bool takes_narrow_weights(const CpuExtensions& cpu) { return cpu.avx2 && !cpu.vnni; }

}  // namespace

ByteWeights round_weights(const float* values, int64_t cols, void* out) {
  const int64_t padded = weight_bytes(cols) / 2;
  const float largest = HWY_DYNAMIC_DISPATCH(LargestWeight)(values, padded);
  ByteWeights rounded;
  rounded.weights = out;
  const CpuExtensions cpu = cpu_extensions();
  const int32_t whole = largest_weight(cols);
  const auto most = static_cast<float>(takes_narrow_weights(cpu) ? std::min(kNarrowWeight, whole) : whole);
  // A step that f32 holds well; with less, weights are zeros.
  const bool tiny = !(largest > 1e-30f);
  rounded.step = tiny ? 0.0f : largest / most * (1 + 0x1p-20f);
  HWY_DYNAMIC_DISPATCH(RoundWeights)
  (values, padded, takes_planes(cpu), tiny ? 0.0f : 1 / rounded.step, rounded, out);
  // A difference is rounded relative to the value, squares and their sum to themselves; those below 2^-126 may be lost.
  const double length = std::sqrt(static_cast<double>(cols));
  rounded.moved_by = rounded.moved_by * 1.001 + length * (static_cast<double>(largest) * 0x1p-23 + 0x1p-62);
  return rounded;
}

PlaneTerms plane_terms(const ByteRows& rows, const ByteRowsQuery& query, int32_t zero) {
  // Sums wrap, as those of the vectors do; all of them together fit.
  const auto moved = static_cast<uint32_t>(zero - rows.zero);
  const uint32_t of_high = moved * 128 * static_cast<uint32_t>(query.weights.high_sum);
  const uint32_t of_low = moved * static_cast<uint32_t>(query.weights.sum) - of_high;
  const double weights = 127 * 128 * std::sqrt(static_cast<double>(rows.cols));  // none is longer
  const double most = static_cast<double>(std::fabs(query.factor)) * static_cast<double>(rows.longest) *
                      (1.01 * query.weights.low + 0x1p-22 * weights);
  return {static_cast<int32_t>(of_high), static_cast<int32_t>(of_low),
          static_cast<float>(query.constant - most * (1 + 0x1p-20))};
}

bool takes_packed_rows(int bits, int64_t cols) {
  if (bits != 4 && bits != 6) return false;
  const CpuExtensions cpu = cpu_extensions();
  const bool whole = cols % packed_order(bits).together == 0 && cols >= packed_values(bits);
  return whole && takes_planes(cpu);
}

namespace {

void scan_by_highway(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  HWY_DYNAMIC_DISPATCH(ScanWeightedBytes)(rows, first, queries, query_count);
}

}  // namespace

WeightedBytesScan* weighted_bytes_scan() {
#if defined(KITH_ARM)
  const CpuExtensions cpu = cpu_extensions();
  if (cpu.mmla) return scan_weighted_bytes_mmla;
  if (cpu.dotprod) return scan_weighted_bytes_dotprod;
#elif defined(KITH_X86)
  const CpuExtensions cpu = cpu_extensions();
  if (cpu.vnni) return scan_weighted_bytes_vnni;
  if (cpu.avx2) return scan_weighted_bytes_avx2;
#endif
  return scan_by_highway;
}

bool shares_weighted_rows(int64_t query_count, int64_t cols) {
  return cpu_extensions().vnni && query_count >= kFewestForPanels && cols <= kMostPanelColumns;
}

}  // namespace kith
#endif
