#include "kernels/lists/weighted_bytes.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lists/weighted_bytes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/cpu_target.hpp"
#include "kernels/panels/instruction_family.hpp"

#include <cmath>
#include <cstring>

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

int64_t ScanWeightedBytes(const ByteRows& rows, const ByteRowsQuery& query, uint32_t first, float* values,
                          uint32_t* numbers) {
  const auto* const weights = static_cast<const int16_t*>(query.weights.weights);
  const int32_t shift = rows.zero * query.weights.sum;
  int64_t found = 0;
  for (int64_t i = 0; i < rows.count; i += kRows) {
    const int64_t here = std::min<int64_t>(kRows, rows.count - i);
    const uint8_t* of[kRows];
    for (int r = 0; r < kRows; ++r) of[r] = rows.bytes + (i + (r < here ? r : 0)) * rows.stride;
    int32_t sums[kRows];
    sum_rows(of, weights, rows.cols, sums);
    for (int64_t r = 0; r < here; ++r) {
      float value = query.constant + query.factor * static_cast<float>(sums[r] - shift);
      if (rows.scales != nullptr) value *= rows.scales[i + r];
      if (rows.terms != nullptr) value += rows.terms[i + r];
      const float least = rows.spreads == nullptr ? value : value - query.tilt * rows.spreads[i + r];
      values[found] = value;
      numbers[found] = first + static_cast<uint32_t>(i + r);
      found += !(least > query.limit);  // a NaN passes
    }
  }
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(ScanWeightedBytes);

ByteWeights round_weights(const double* values, int64_t cols, void* out) {
  double largest = 0;
  for (int64_t c = 0; c < cols; ++c) largest = std::max(largest, std::abs(values[c]));
  ByteWeights rounded;
  rounded.weights = out;
  const auto most = static_cast<double>(largest_weight(cols));
  // A step that f32 holds well; with less, weights are zeros.
  const bool tiny = !(largest > 1e-30);
  rounded.step = tiny ? 0.0f : static_cast<float>(largest / most * (1 + 0x1p-20));
  const double inverse = tiny ? 0.0 : 1 / static_cast<double>(rounded.step);
  const int64_t padded = weight_bytes(cols) / 2;
  const int64_t whole = cols / kFewestWeightColumns * kFewestWeightColumns;
  double squares = 0;
  int64_t lows = 0;
  std::memset(out, 0, static_cast<size_t>(2 * padded));
  const bool planes = cpu_extensions().dotprod;
  auto* const words = static_cast<int16_t*>(out);
  auto* const high = static_cast<int8_t*>(out);
  int8_t* const low = high + padded;
  for (int64_t c = 0; c < cols; ++c) {
    const auto weight = static_cast<int32_t>(std::lrint(values[c] * inverse));
    const double lost = values[c] - static_cast<double>(rounded.step) * weight;
    squares += lost * lost;
    rounded.sum += weight;
    // The last columns, where they fill no vector, are read as the end of one that begins before.
    const int64_t at = c < whole ? c : c + kFewestWeightColumns - (cols - whole);
    if (planes) {
      const int32_t upper = (weight + 64) >> 7;
      high[at] = static_cast<int8_t>(upper);
      low[at] = static_cast<int8_t>(weight - upper * 128);
      lows += low[at] * low[at];
      rounded.high_sum += upper;
    } else {
      words[at] = static_cast<int16_t>(weight);
    }
  }
  rounded.moved_by = std::sqrt(squares) * (1 + 1e-6) + 1e-30 * static_cast<double>(cols);
  rounded.low = std::sqrt(static_cast<double>(lows));
  return rounded;
}

int64_t scan_weighted_bytes(const ByteRows& rows, const ByteRowsQuery& query, uint32_t first, float* values,
                            uint32_t* numbers) {
#if defined(KITH_ARM)
  if (cpu_extensions().dotprod) return scan_weighted_bytes_dotprod(rows, query, first, values, numbers);
#endif
  return HWY_DYNAMIC_DISPATCH(ScanWeightedBytes)(rows, query, first, values, numbers);
}

}  // namespace kith
#endif
