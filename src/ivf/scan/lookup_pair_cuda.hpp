// What a scan by lookups knows of a query and a list, and where the values of its vectors go: the same for sums of
// codewords and for product codes.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/scan_lists_task_cuda.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

struct LookupPair {
  PairBounds bounds;
  float limit;    // of the second pass; NaN: nothing is sure, or within reach
  float* values;  // of the first
};

// Tells the query's bounds to the steps that follow; by one thread. `slot`: which of the query's lists it is.
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
