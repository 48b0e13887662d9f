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
static_assert(kFloats <= 16);  // codes have at least 4 bits

template <int64_t kCount>
struct Columns {
  static constexpr int64_t value = kCount;
};

// Adds some columns' products to what was there, or to zeros. The query's values stay in registers.
template <int64_t kColumns>
HWY_INLINE void fill_part(const float* query, const float* columns, float factor, const float* from, int64_t count,
                          float* table) {
  const F32 d;
  hn::Vec<F32> values[kColumns];
#pragma GCC unroll 8
  for (int64_t c = 0; c < kColumns; ++c) values[c] = hn::Set(d, factor * query[c]);
  for (int64_t w = 0; w < count; w += kFloats) {
    auto sum = from == nullptr ? hn::Zero(d) : hn::LoadU(d, from + w);
#pragma GCC unroll 8
    for (int64_t c = 0; c < kColumns; ++c) sum = hn::MulAdd(values[c], hn::LoadU(d, columns + c * count + w), sum);
    hn::StoreU(sum, d, table + w);
  }
}

void FillCodeTables(const CodeFormat& format, const CodewordColumns& words, const float* query, float factor,
                    float* tables) {
  const int64_t count = format.codewords();
  const int64_t width = format.part_cols();
  const float* squares = words.squares;
  const float* columns = words.values;
  for (int64_t p = 0; p < format.parts; ++p, columns += width * count, tables += count) {
    const float* from = squares == nullptr ? nullptr : squares + p * count;  // what the next columns are added to
    int64_t c = 0;
    const auto add = [&](auto columns_of) {
      constexpr int64_t kColumns = decltype(columns_of)::value;
      fill_part<kColumns>(query + p * width + c, columns + c * count, factor, from, count, tables);
      c += kColumns;
      from = tables;
    };
    while (width - c >= 8) add(Columns<8>());
    if (width - c >= 4) add(Columns<4>());
    if (width - c >= 2) add(Columns<2>());
    if (width - c >= 1) add(Columns<1>());
  }
}

ByteTables RoundCodeTables(const CodeFormat& format, const float* tables, uint8_t* bytes) {
  constexpr double kMostByte = 255;
  const F32 d;
  const int64_t count = format.codewords();
  ByteTables rounded;
  float leasts[kMostByteParts];
  float widest = 0;
  float sure = 0;  // not a number where a value is none, or infinite
  for (int64_t p = 0; p < format.parts; ++p) {
    auto low = hn::LoadU(d, tables + p * count);
    auto high = low;
    for (int64_t w = kFloats; w < count; w += kFloats) {
      const auto v = hn::LoadU(d, tables + p * count + w);
      low = hn::Min(low, v);
      high = hn::Max(high, v);
    }
    const float least = hn::GetLane(hn::MinOfLanes(d, low));
    const float most = hn::GetLane(hn::MaxOfLanes(d, high));
    leasts[p] = least;
    rounded.least += least;
    widest = std::max(widest, most - least);
    sure += (most - most) + (least - least);
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

void fill_code_tables(const CodeFormat& format, const CodewordColumns& words, const float* query, float factor,
                      float* tables) {
  HWY_DYNAMIC_DISPATCH(FillCodeTables)(format, words, query, factor, tables);
}

ByteTables round_code_tables(const CodeFormat& format, const float* tables, uint8_t* bytes) {
  return HWY_DYNAMIC_DISPATCH(RoundCodeTables)(format, tables, bytes);
}

// Four sums that do not wait for each other.
float sum_code_tables(const CodeFormat& format, const float* tables, const uint8_t* code) {
  const int64_t words = format.codewords();
  float sums[4] = {};
  int64_t p = 0;
  if (format.bits == 8) {
    for (; p + 4 <= format.parts; p += 4, tables += 4 * 256) {
      for (int64_t j = 0; j < 4; ++j) sums[j] += tables[j * 256 + code[p + j]];
    }
  } else if (format.bits == 4) {
    for (; p + 4 <= format.parts; p += 4, tables += 4 * 16) {
      const uint8_t first = code[p / 2];
      const uint8_t second = code[p / 2 + 1];
      sums[0] += tables[first & 15];
      sums[1] += tables[16 + (first >> 4)];
      sums[2] += tables[32 + (second & 15)];
      sums[3] += tables[48 + (second >> 4)];
    }
  }
  for (; p < format.parts; ++p, tables += words) sums[p % 4] += tables[sub_code(code, p, format.bits)];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void sum_code_tables(const CodeFormat& format, const float* tables, const uint8_t* codes, int64_t count,
                     float* values) {
  const int64_t bytes = format.bytes();
  for (int64_t i = 0; i < count; ++i) values[i] = sum_code_tables(format, tables, codes + i * bytes);
}

}  // namespace kith
#endif
