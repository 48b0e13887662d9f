// Scans by lookup tables in shared memory, for product codes of 8 bits: 256 threads fill a block's tables, an entry per
// part and codeword, from the codewords as halves, and add up entries for codes. Also, shared with sums of codewords: a
// scan's bounds for a query and a list, and where the values of its vectors are written.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/scan_cut.hpp"
#include "ivf/scan/scan_lists_task_cuda.hpp"
#include "kernels/codes/code_reader_cuda.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

inline constexpr int kLookupThreads = 256;  // one thread per codeword
inline constexpr int kLookupCols = kNarrowSteps * 16;

// Fills the entries of the codewords with this thread's number: sums over a part's columns, accumulated by step(sum,
// values[col], codeword's column).
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

// For codes of a multiple of four bytes, read by the widest loads that their alignment allows.
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

struct LookupPair {
  PairBounds bounds;
  float limit;    // of the second pass; NaN: no bound, or nothing within it
  float* values;  // of the first pass
};

// Publishes the query's bounds for the following steps; by one thread. `slot`: the list's index among the query's
// lists.
template <bool kFirst>
__device__ inline LookupPair publish_bounds(const ScanListsTask& task, int64_t query, int64_t slot,
                                            const PairBounds& bounds) {
  const bool sure = bounds.sure();
  if (!sure) task.unsure[query] = 1;
  atomicMax(vectors<int>(&task.worst[query].error), __float_as_int(bounds.error));
  atomicMax(vectors<int>(&task.worst[query].moved), __float_as_int(bounds.moved));
  LookupPair pair{bounds, NAN, nullptr};
  if constexpr (kFirst) {
    task.bounds[query * kMostFirstSlots + slot] = {bounds.error, bounds.moved};
    pair.values = task.values + query * task.value_stride + task.value_starts[query * (kMostFirstSlots + 1) + slot];
  } else if (sure) {
    pair.limit = value_limit(task.lists.key(), bounds, task.reaches[query]);
  }
  return pair;
}

// The value of a vector: of that number among the list's that the pass looks at, at that position of all.
template <bool kFirst>
__device__ inline void give_value(const ScanListsTask& task, const LookupPair& pair, int64_t query, uint32_t list,
                                  uint32_t number, int64_t position, float value) {
  if (task.kept != nullptr && !is_kept(task.kept, task.lists.rows[position])) value = NAN;
  if constexpr (kFirst) {
    pair.values[number] = pair.bounds.estimate(value);
  } else if (value <= pair.limit) {
    if (task.candidates.has_enough_before(static_cast<uint32_t>(position))) return;
    const uint32_t at = atomicAdd(&task.candidates.counts[query], 1u);
    if (at >= task.candidates.capacity) return;
    const int64_t place = query * task.candidates.capacity + at;
    task.candidates.entries[place] = {static_cast<uint32_t>(position), pair.bounds.estimate(value)};
    task.candidates.lists[place] = list;
  }
}

}  // namespace kith
