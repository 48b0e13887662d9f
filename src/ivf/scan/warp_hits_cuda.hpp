// Candidates that a warp of the scan of lists has found, in shared memory until there are many: one trip to device
// memory then serves up to 32 at a time, and those that found them go on multiplying.
#pragma once

#include "cuda/device_core.hpp"
#include "ivf/scan/scan_queries_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kWarpHits = 176;
inline constexpr int kHitPlaceBits = 7;  // of a query's place in its group, at most 128

// Rare, and so not inlined: the code of the scan must fit its cache, and its registers hold other things. Entries are
// (row of the item << kHitPlaceBits | place, value).
static __device__ __noinline__ void write_hits(const ScanListsTask& task, const ScanQuery* queries, const uint2* hits,
                                        int count, uint32_t list, uint32_t first_position) {
  __syncwarp();
  for (int i = static_cast<int>(threadIdx.x) % 32; i < count; i += 32) {
    const uint2 hit = hits[i];
    const ScanQuery& query = queries[hit.x & ((1u << kHitPlaceBits) - 1)];
    const uint32_t position = first_position + (hit.x >> kHitPlaceBits);
    if (task.candidates.has_enough_before(position)) continue;
    const uint32_t at = atomicAdd(&task.candidates.counts[query.query], 1u);
    if (at >= task.candidates.capacity) continue;
    const int64_t place = static_cast<int64_t>(query.query) * task.candidates.capacity + at;
    task.candidates.entries[place] = {position, query.bounds.estimate(__uint_as_float(hit.y))};
    task.candidates.lists[place] = list;
  }
  __syncwarp();
}

// values[i]: registers have no addresses.
template <int kCount>
__device__ inline float pick(const float (&values)[kCount], int i) {
  if constexpr (kCount == 1) {
    return values[0];
  } else {
    constexpr int kHalf = kCount <= 2 ? 1 : kCount <= 4 ? 2 : kCount <= 8 ? 4 : kCount <= 16 ? 8 : 16;
    float half[kHalf];
    KITH_UNROLL
    for (int j = 0; j < kHalf; ++j) half[j] = j + kHalf < kCount && (i & kHalf) != 0 ? values[j + kHalf] : values[j];
    return pick(half, i);
  }
}

class WarpHits {
 public:
  __device__ WarpHits(const ScanListsTask& task, const ScanItem& item, const ScanQuery* queries, uint2* memory)
      : task_(task),
        queries_(queries),
        entries_(memory + threadIdx.x / 32 * kWarpHits),
        list_(item.list),
        first_position_(static_cast<uint32_t>(task.lists.offsets[item.list]) + item.first_row) {}

  // All lanes call it. `hits` has a bit for each of a lane's values that is one; values are as matrix units leave them:
  // of every four the last two are of row `row` + 8 of the item, every other one of the next place, and the next four
  // of the place eight further on.
  template <int kCount>
  __device__ void add(uint32_t hits, uint32_t row, int place, const float (&values)[kCount]) {
    unsigned who = __ballot_sync(0xFFFFFFFFu, hits != 0);
    while (who != 0) {
      const int more = __popc(who);
      if (count_ + more > kWarpHits) flush();
      if (hits != 0) {
        const int i = __ffs(static_cast<int>(hits)) - 1;
        const uint32_t of_row = row + static_cast<uint32_t>(4 * (i & 2));
        const auto of_place = static_cast<uint32_t>(place + 2 * (i & ~3) + (i & 1));
        const unsigned below = who & ((1u << threadIdx.x % 32) - 1);
        entries_[count_ + __popc(below)] = {of_row << kHitPlaceBits | of_place, __float_as_uint(pick(values, i))};
        hits &= hits - 1;
      }
      count_ += more;
      who = __ballot_sync(0xFFFFFFFFu, hits != 0);
    }
  }

  __device__ void flush() {
    if (count_ > 0) write_hits(task_, queries_, entries_, count_, list_, first_position_);
    count_ = 0;
  }

 private:
  const ScanListsTask& task_;
  const ScanQuery* queries_;
  uint2* entries_;
  uint32_t list_;
  uint32_t first_position_;
  int count_ = 0;
};

}  // namespace kith
