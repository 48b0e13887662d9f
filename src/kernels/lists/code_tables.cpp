#include "kernels/lists/code_tables.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lists/code_tables.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
constexpr int64_t kFloats = hn::MaxLanes(F32());
static_assert(kFloats <= 16);     // codes have at least 4 bits
constexpr int64_t kSegment = 64;  // columns of a part up to which queries are gone through together

// Some codewords of one part for four queries, with the queries' values side by side for each column: a codeword's
// value is loaded once for all of them.
template <int kVectors>
HWY_INLINE void fill_words(const float* values, int64_t width, const float* columns, const float* squares,
                           int64_t count, int64_t word, float* const (&tables)[kTablesTogether]) {
  constexpr int kQueries = kTablesTogether;
  static_assert(kQueries == 4);
  const F32 d;
  hn::Vec<F32> sums[kQueries][kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const auto first = squares == nullptr ? hn::Zero(d) : hn::LoadU(d, squares + word + v * kFloats);
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) sums[q][v] = first;
  }
  for (int64_t c = 0; c < width; ++c) {
    hn::Vec<F32> column[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) column[v] = hn::LoadU(d, columns + c * count + word + v * kFloats);
    const auto add = [&](int q, hn::Vec<F32> value) HWY_ATTR {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[q][v] = hn::MulAdd(value, column[v], sums[q][v]);
    };
#if HWY_ARCH_ARM_A64
    const auto four = hn::LoadU(d, values + c * kQueries);
    add(0, hn::Broadcast<0>(four));
    add(1, hn::Broadcast<1>(four));
    add(2, hn::Broadcast<2>(four));
    add(3, hn::Broadcast<3>(four));
#else
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) add(q, hn::Set(d, values[c * kQueries + q]));
#endif
  }
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[q][v], d, tables[q] + word + v * kFloats);
  }
}

HWY_INLINE void fill_part(const float* values, int64_t width, const float* columns, const float* squares, int64_t count,
                          float* const (&tables)[kTablesTogether]) {
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
  constexpr int kVectors = 4;
#else
  constexpr int kVectors = 2;
#endif
  int64_t word = 0;
  for (; word + kVectors * kFloats <= count; word += kVectors * kFloats) {
    fill_words<kVectors>(values, width, columns, squares, count, word, tables);
  }
  for (; word < count; word += kFloats) fill_words<1>(values, width, columns, squares, count, word, tables);
}

// The same for one query.
HWY_INLINE void fill_part(const float* query, float factor, int64_t width, const float* columns, const float* squares,
                          int64_t count, float* table) {
  const F32 d;
  constexpr int64_t kTogether = 4;  // vectors of words, which do not wait for each other
  int64_t w = 0;
  for (; w + kTogether * kFloats <= count; w += kTogether * kFloats) {
    hn::Vec<F32> sums[kTogether];
#pragma GCC unroll 4
    for (int64_t i = 0; i < kTogether; ++i) {
      sums[i] = squares == nullptr ? hn::Zero(d) : hn::LoadU(d, squares + w + i * kFloats);
    }
    for (int64_t c = 0; c < width; ++c) {
      const auto value = hn::Set(d, factor * query[c]);
#pragma GCC unroll 4
      for (int64_t i = 0; i < kTogether; ++i) {
        sums[i] = hn::MulAdd(value, hn::LoadU(d, columns + c * count + w + i * kFloats), sums[i]);
      }
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < kTogether; ++i) hn::StoreU(sums[i], d, table + w + i * kFloats);
  }
  for (; w < count; w += kFloats) {
    auto sum = squares == nullptr ? hn::Zero(d) : hn::LoadU(d, squares + w);
    for (int64_t c = 0; c < width; ++c) {
      sum = hn::MulAdd(hn::Set(d, factor * query[c]), hn::LoadU(d, columns + c * count + w), sum);
    }
    hn::StoreU(sum, d, table + w);
  }
}

void FillCodeTables(const CodeFormat& format, const CodewordColumns& words, const float* const* queries,
                    int64_t query_count, float factor, float* const* tables) {
  const int64_t count = format.codewords();
  const int64_t width = format.part_cols();
  HWY_ALIGN float values[kTablesTogether * kSegment];
  for (int64_t p = 0; p < format.parts; ++p) {
    const float* const columns = words.values + p * width * count;
    const float* const squares = words.squares == nullptr ? nullptr : words.squares + p * count;
    if (query_count == 1 || width > kSegment) {
      for (int64_t q = 0; q < query_count; ++q) {
        fill_part(queries[q] + p * width, factor, width, columns, squares, count, tables[q] + p * count);
      }
      continue;
    }
    float* to[kTablesTogether];
    for (int64_t q = 0; q < kTablesTogether; ++q) {
      const int64_t real = std::min(q, query_count - 1);  // those that fill up are written twice
      for (int64_t c = 0; c < width; ++c) values[c * kTablesTogether + q] = factor * queries[real][p * width + c];
      to[q] = tables[real] + p * count;
    }
    fill_part(values, width, columns, squares, count, to);
  }
}

ByteTables RoundCodeTables(const CodeFormat& format, const float* tables, uint8_t* bytes) {
  constexpr double kMostByte = 255;
  const F32 d;
  const int64_t count = format.codewords();
  ByteTables rounded;
  float leasts[kMostByteParts];
  float widest = 0;
  float sure = 0;  // NaN if any value is NaN
  for (int64_t p = 0; p < format.parts; ++p) {
    // Four independent minima and maxima, to hide the latency of each.
    hn::Vec<F32> lows[4];
    hn::Vec<F32> highs[4];
    const float* const table = tables + p * count;
    const int64_t step = std::min<int64_t>(4, count / kFloats);
    auto unsure = hn::Zero(d);  // NaN if any value is NaN or infinite
    for (int64_t i = 0; i < 4; ++i) {
      lows[i] = highs[i] = hn::LoadU(d, table + i % step * kFloats);
      unsure = hn::Add(unsure, hn::Sub(lows[i], lows[i]));
    }
    for (int64_t w = step * kFloats; w < count; w += 4 * kFloats) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) {
        const auto v = hn::LoadU(d, table + w + i * kFloats);
        lows[i] = hn::Min(lows[i], v);
        highs[i] = hn::Max(highs[i], v);
        unsure = hn::Add(unsure, hn::Sub(v, v));
      }
    }
    const auto low = hn::Min(hn::Min(lows[0], lows[1]), hn::Min(lows[2], lows[3]));
    const auto high = hn::Max(hn::Max(highs[0], highs[1]), hn::Max(highs[2], highs[3]));
    const float least = hn::GetLane(hn::MinOfLanes(d, low));
    const float most = hn::GetLane(hn::MaxOfLanes(d, high));
    leasts[p] = least;
    rounded.least += least;
    widest = std::max(widest, most - least);
    sure += hn::GetLane(hn::SumOfLanes(d, unsure));
  }
  rounded.step = widest / kMostByte;
  // A little less than 1 / step: what is rounded to f32 on the way stays a lower bound.
  const double inverse = (1 - 0x1p-20) / rounded.step;
  if (!(sure == 0.0f) || !(inverse < 1e30) || !(widest < 1e30f)) return {};
  const hn::Rebind<int32_t, F32> di;
  const hn::Rebind<uint8_t, F32> db;
  const auto scale = hn::Set(d, static_cast<float>(inverse));
  for (int64_t p = 0; p < format.parts; ++p) {
    const auto least = hn::Set(d, leasts[p]);
    for (int64_t w = 0; w < count; w += kFloats) {
      const auto steps = hn::Mul(hn::Sub(hn::LoadU(d, tables + p * count + w), least), scale);
      hn::StoreU(hn::DemoteTo(db, hn::ConvertTo(di, steps)), db, bytes + p * count + w);
    }
  }
  return rounded;
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(FillCodeTables);
HWY_EXPORT(RoundCodeTables);

void fill_code_tables(const CodeFormat& format, const CodewordColumns& words, const float* const* queries,
                      int64_t query_count, float factor, float* const* tables) {
  for (int64_t first = 0; first < query_count; first += kTablesTogether) {
    HWY_DYNAMIC_DISPATCH(FillCodeTables)
    (format, words, queries + first, std::min(kTablesTogether, query_count - first), factor, tables + first);
  }
}

ByteTables round_code_tables(const CodeFormat& format, const float* tables, uint8_t* bytes) {
  return HWY_DYNAMIC_DISPATCH(RoundCodeTables)(format, tables, bytes);
}

}  // namespace kith
#endif
