// The products of a warpgroup's vectors with the queries of an item, and what becomes of them: all values of the first
// pass, of the second those within a query's limit.
#pragma once

#include "cuda/ptx_hopper.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/scan_queries_cuda.hpp"
#include "ivf/scan/warp_hits_cuda.hpp"
#include "ivf/scan/warpgroup_operands_cuda.hpp"

#include <cstdint>

namespace kith {

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
      // Most tiles have none, and a test whether there is any takes fewer instructions than to say which.
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
