// The products of a warpgroup's vectors with the queries of an item, and what becomes of them: all values of the first
// pass, of the second those within a query's limit.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/ptx_hopper.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/scan_cut.hpp"
#include "ivf/scan/scan_lists_task_cuda.hpp"
#include "ivf/scan/scan_queries_cuda.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// How a block of two warpgroups cuts a scan of lists, and the queries in its shared memory, the right operand of their
// products.
inline constexpr int kGroupThreads = 128;
inline constexpr int kGroups = 2;           // of a block
inline constexpr int kGroupRows = 64;       // of a warpgroup at a time
inline constexpr int kWarpRows = 16;        // of these
inline constexpr int kQueryChunkSteps = 4;  // of 16 halves in a row of 128 bytes
inline constexpr int kQueryRowBytes = 128;
inline constexpr int kQueryChunkBytes = kNarrowQueries * kQueryRowBytes;

// The queries' halves, as the matrix units read them: rows of 128 bytes, four steps each, in units of 16 bytes that are
// swizzled by the row's number modulo 8. Of a step's 16 halves a quarter has two in either unit.
class WarpgroupOperands {
 public:
  __device__ WarpgroupOperands(std::byte* data, int steps, UnitOrder order)
      : data_(data), steps_(steps), order_(order) {}

  __device__ int steps() const { return steps_; }
  __device__ void store(int unit, int place, uint2 halves) const {
    const int step = step_of_unit(order_, unit);
    std::byte* const row =
        data_ + step / kQueryChunkSteps * kQueryChunkBytes + place * kQueryRowBytes + 4 * quarter_of_unit(order_, unit);
    const int sixteen = step % kQueryChunkSteps * 2;
    store_vector(row + 16 * (sixteen ^ (place % 8)), halves.x);
    store_vector(row + 16 * ((sixteen + 1) ^ (place % 8)), halves.y);
  }
  __device__ void fence() const { ptx::shared_writes_fence(); }

  // Descriptor of one step, from query `first` on, a multiple of eight. Only its lower half has the address.
  __device__ uint64_t descriptor(uint32_t start, int first, int step) const {
    constexpr uint64_t kUpper = uint64_t{0x40000040} << 32;
    const int bytes = step / kQueryChunkSteps * kQueryChunkBytes + step % kQueryChunkSteps * 32;
    return kUpper | (start + static_cast<uint32_t>(first * (kQueryRowBytes / 16)) + static_cast<uint32_t>(bytes / 16));
  }
  __device__ uint32_t start() const {
    auto low = static_cast<uint32_t>(ptx::operand_descriptor(data_));
    ptx::keep_whole(low);
    return low;
  }

 private:
  std::byte* data_;
  int steps_;
  UnitOrder order_;
};

// Candidates that a warp of the scan of lists has found, in shared memory until there are many: one trip to device
// memory then serves up to 32 at a time, and those that found them go on multiplying.
inline constexpr int kWarpHits = 176;
inline constexpr int kHitPlaceBits = 8;  // of a query's place in its group, at most 256

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

// What a thread does with its sums: of its warp's 16 vectors it has lane / 4 and the one 8 further on, of every eight
// queries 2 (lane % 4) and the next.
template <bool kFirst>
class TileEnd {
 public:
  __device__ TileEnd(const ScanListsTask& task, const ScanItem& item, int queries, const ScanMemory& memory,
                     uint2* hits)
      : task_(task),
        memory_(memory),
        rows_(static_cast<uint32_t>(item.rows)),
        first_row_(item.first_row),
        queries_(queries),
        hits_(task, item, memory.queries, hits) {
    if constexpr (kFirst) {
      KITH_UNROLL
      for (int j = 0; j < 2; ++j) eight_[j] = target(2 * (static_cast<int>(threadIdx.x) % 4) + j);
    }
  }

  // `row` is of the item, of the first of this thread's two vectors.
  template <int kQueries>
  __device__ void tile(const float (&sums)[kQueries / 2], uint32_t row, int first_query) {
    const int first = first_query + 2 * (static_cast<int>(threadIdx.x) % 4);
    if constexpr (kFirst) {
      KITH_UNROLL
      for (int i = 0; i < kQueries / 2; i += 4) {
        KITH_UNROLL
        for (int j = 0; j < 2; ++j) {
          const Target to = i == 0 && first_query == 0 ? eight_[j] : target(first + 2 * i + j);
          float* const values = to.values + row;
          if (to.there && row < rows_) values[0] = fmaf(sums[i + j], to.scale, to.shift);
          if (to.there && row + 8 < rows_) values[8] = fmaf(sums[i + 2 + j], to.scale, to.shift);
        }
      }
    } else {
      // Most tiles have none, and testing for any takes fewer instructions than finding which.
      bool any = false;
      KITH_UNROLL
      for (int i = 0; i < kQueries / 2; i += 4) {
        const float2 limits = load_vector<float2>(memory_.limits + first + 2 * i);
        any = any || sums[i] <= limits.x || sums[i + 2] <= limits.x;
        any = any || sums[i + 1] <= limits.y || sums[i + 3] <= limits.y;
      }
      if (__any_sync(0xFFFFFFFFu, any)) add_hits<kQueries>(sums, row, first);
    }
    __syncwarp();  // matrix units want all lanes together
  }

  __device__ void finish() {
    if (!kFirst) hits_.flush();
  }

 private:
  // Which of the sums are within their limits.
  template <int kQueries>
  __device__ void add_hits(const float (&sums)[kQueries / 2], uint32_t row, int first) {
    float values[kQueries / 2];
    KITH_UNROLL
    for (int i = 0; i < kQueries / 2; ++i) values[i] = sums[i];
    ptx::keep_sums(values);  // else the comparisons would be kept, and cost what they are to spare
    uint32_t hits = 0;
    KITH_UNROLL
    for (int i = 0; i < kQueries / 2; i += 4) {
      const float2 limits = load_vector<float2>(memory_.limits + first + 2 * i);
      if (values[i] <= limits.x) hits |= 1u << i;
      if (values[i + 1] <= limits.y) hits |= 2u << i;
      if (values[i + 2] <= limits.x) hits |= 4u << i;
      if (values[i + 3] <= limits.y) hits |= 8u << i;
    }
    hits_.add(hits, row, first, values);
  }

  // Where the first pass's estimates of a query go; nowhere past the last query.
  struct Target {
    float* values;
    float scale;
    float shift;
    bool there;
  };
  __device__ Target target(int place) const {
    if (place >= queries_) return {task_.values, 0, 0, false};
    const ScanQuery& query = memory_.queries[place];
    float* const values =
        task_.values + static_cast<int64_t>(query.query) * task_.value_stride + query.value_start + first_row_;
    return {values, query.bounds.scale, query.bounds.shift, true};
  }

  const ScanListsTask& task_;
  const ScanMemory& memory_;
  Target eight_[2];  // of the first eight queries: often there are no more
  uint32_t rows_;
  uint32_t first_row_;
  int queries_;
  WarpHits hits_;
};

// 64 vectors with kQueries of the queries. Sums start from the vectors' terms, which spares their addition.
template <int kQueries, int kSteps, bool kFirst>
__device__ inline void multiply_tile(const uint32_t (&vectors)[kSteps][1][4], const float (&terms)[2], uint32_t row,
                                     const WarpgroupOperands& operands, uint32_t start, int first_query,
                                     TileEnd<kFirst>& end) {
  float sums[kQueries / 2];
  KITH_UNROLL
  for (int i = 0; i < kQueries / 2; ++i) sums[i] = terms[i % 4 / 2];
  ptx::warpgroup_fence();
  KITH_UNROLL
  for (int step = 0; step < kSteps; ++step) {
    ptx::multiply_rows(sums, vectors[step][0], operands.descriptor(start, first_query, step));
  }
  ptx::warpgroup_commit();
  ptx::warpgroup_wait<0>();
  ptx::keep_sums(sums);
  end.template tile<kQueries>(sums, row, first_query);
}

}  // namespace kith
