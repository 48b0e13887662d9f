// Lookup tables of product codes of 8 bits in a block's shared memory: entries for each part and codeword, made by 256
// threads from the codewords' halves, and their sums for codes.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/codes/code_reader_cuda.hpp"
#include "ivf/scan/scan_units.hpp"
#include "kernels/codes/code_reader_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kLookupThreads = 256;  // as many as there are codewords
inline constexpr int kLookupCols = kNarrowSteps * 16;

// Entries are sums over a part's columns, from step(sum, values[col], codeword's column) to the next; of the codewords of
// this thread's number.
template <typename Step>
__device__ inline void fill_lookup_tables(const CodeFormat& format, const uint16_t* table, const float* values,
                                          float* tables, const Step& step) {
  const UnitOrder order = unit_order(format);
  const auto number = static_cast<int>(threadIdx.x);
  const auto each = static_cast<int>(format.part_cols());
  const auto cols = static_cast<int>(format.cols);
  const auto* const halves = vectors<uint2>(table);
  float sum = 0;
  int part = 0;
#pragma unroll 4
  for (int unit = 0; 4 * unit < cols; ++unit) {
    const int at = (step_of_unit(order, unit) * 256 + number) * 4 + quarter_of_unit(order, unit);
    const FourFloats word = floats_of(__ldg(halves + at));
    const float* const four = values + 4 * unit;
    sum = step(sum, four[0], word.values[0]);
    sum = step(sum, four[1], word.values[1]);
    if (each == 2) {
      tables[part++ * 256 + number] = sum;
      sum = 0;
    }
    sum = step(sum, four[2], word.values[2]);
    sum = step(sum, four[3], word.values[3]);
    if (4 * (unit + 1) % each == 0) {
      tables[part++ * 256 + number] = sum;
      sum = 0;
    }
  }
}

__device__ inline float look_up_four(const float* tables, uint32_t word) {
  return (tables[word & 255u] + tables[256 + (word >> 8 & 255u)]) +
         (tables[512 + (word >> 16 & 255u)] + tables[768 + (word >> 24)]);
}

// Of a code of a multiple of four bytes, which lies at a multiple of as many as can be read at once.
__device__ inline float look_up(const float* tables, const uint8_t* code, int64_t parts) {
  const auto bytes = static_cast<int>(parts);
  float sum = 0;
  if (bytes % 16 == 0) {
#pragma unroll 2
    for (int at = 0; at < bytes; at += 16) {
      const uint4 words = __ldg(vectors<uint4>(code + at));
      sum += look_up_four(tables + at * 256, words.x);
      sum += look_up_four(tables + (at + 4) * 256, words.y);
      sum += look_up_four(tables + (at + 8) * 256, words.z);
      sum += look_up_four(tables + (at + 12) * 256, words.w);
    }
  } else if (bytes % 8 == 0) {
#pragma unroll 2
    for (int at = 0; at < bytes; at += 8) {
      const uint2 words = __ldg(vectors<uint2>(code + at));
      sum += look_up_four(tables + at * 256, words.x);
      sum += look_up_four(tables + (at + 4) * 256, words.y);
    }
  } else {
#pragma unroll 4
    for (int at = 0; at < bytes; at += 4) {
      sum += look_up_four(tables + at * 256, __ldg(vectors<uint32_t>(code + at)));
    }
  }
  return sum;
}

}  // namespace kith
