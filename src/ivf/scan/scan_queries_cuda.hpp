// The queries of an item in a block's shared memory: as fp16 for the tensor cores, with the list's centre subtracted,
// and error bounds of their products.
//
// For distances, a query whose reach does not extend to the list is dropped: if |x - c| is larger than the reach plus
// the list's radius, no vector of the list is within reach. For well separated lists this avoids most of the scan.
// Norms stored in codes have no radius: all queries are scanned with them.
#pragma once

#include "core/slot.hpp"
#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "ivf/scan/scan_cut.hpp"
#include "ivf/scan/scan_item_cuda.hpp"
#include "kernels/codes/code_reader_cuda.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace kith {

struct LoadedQuery {
  RoundedQuery rounded;
  uint32_t query;
  uint32_t slot;
};

// Typed parts of a block's shared memory, side by side.
struct SharedLayout {
  int64_t bytes = 0;

  template <typename T>
  KITH_HOST_DEVICE Slot<T> take(int64_t count) {
    const Slot<T> slot{bytes, count};
    bytes += count * static_cast<int64_t>(sizeof(T));
    return slot;
  }
};

struct ScanMemory {
  std::byte* table;
  std::byte* operands;
  float* origin;        // the centre, scaled; zeros where there is none, and past the columns
  LoadedQuery* loaded;  // may overlap memory that the scan itself uses
  ScanQuery* queries;
  float* limits;
  ScanItem* item;  // two, in turn
  int* listed;     // queries that are not left out
};

// For floats that are not negative. `seen` is what it was not long ago: never more than now.
__device__ inline void raise(float* to, float seen, float value) {
  if (value > seen) atomicMax(vectors<int>(to), __float_as_int(value));
}

// The centre of the item's list. Zeros stay where there is none. All threads.
__device__ inline void load_origin(const ScanListsTask& task, const ScanItem& item, float scale, int steps,
                                   float* origin) {
  const int cols = static_cast<int>(task.lists.codec.format.cols);
  const bool there = task.lists.has_origin();
  for (int col = static_cast<int>(threadIdx.x); col < steps * 16; col += static_cast<int>(blockDim.x)) {
    origin[col] = there && col < cols ? task.lists.centres[static_cast<int64_t>(item.list) * cols + col] * scale : 0.0f;
  }
}

class QueryReader {
 public:
  __device__ explicit QueryReader(const ScanListsTask& task)
      : queries_(task.queries),
        stride_(task.query_stride),
        cols_(static_cast<int>(task.lists.codec.format.cols)),
        aligned_(cols_ % 4 == 0 && stride_ % 4 == 0 && reinterpret_cast<uintptr_t>(queries_) % 16 == 0) {}

  // Zeros past the columns.
  __device__ float4 four(uint32_t query, int first) const {
    const float* const values = queries_ + static_cast<int64_t>(query) * stride_;
    if (!aligned_) return four_columns(values, first, cols_);
    float4 four = {0, 0, 0, 0};
    if (first < cols_) four = load_vector<float4>(values + first);
    return four;
  }

 private:
  const float* queries_;
  int64_t stride_;
  int cols_;
  bool aligned_;
};

// What rounding has moved a query by that was made to have length 1.
__device__ inline double unit_rounding(const ScanListsTask& task, float scale) {
  return task.lists.unit ? scale * kUnitMoved : 0.0;
}

// Halves of one query of any metric and width, negated, and what is known of them; by a warp.
template <typename Operands>
__device__ inline void load_query(const ScanListsTask& task, const ProbePair& pair, int place, float scale,
                                  const Operands& operands, const ScanMemory& memory) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool differences = task.lists.key().has_centred();
  const QueryReader reader(task);
  const float own_scale = differences ? scale : task.query_scales[pair.query];
  double squares = 0;
  double residuals = 0;
  double offset = 0;
  double norm = 0;
  for (int first = 4 * lane; first < operands.steps() * 16; first += 128) {
    const float4 loaded = reader.four(pair.query, first);
    const float x[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
    double wanted[4];
    FourFloats rounded;
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const double origin = memory.origin[first + i];
      const double scaled = static_cast<double>(x[i]) * own_scale;
      wanted[i] = differences ? scaled - origin : scaled;
      offset += scaled * origin;
      norm += scaled * scaled;
      rounded.values[i] = -static_cast<float>(wanted[i]);
    }
    const uint2 halves = halves_of(rounded, 1.0f, {0, 0, 0, 0});
    const FourFloats have = floats_of(halves);
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const double moved = wanted[i] + have.values[i];
      squares += static_cast<double>(have.values[i]) * have.values[i];
      residuals += moved * moved;
    }
    operands.store(first / 4, place, halves);
  }
  squares = warp_sum(squares);
  residuals = warp_sum(residuals);
  RoundedQuery rounded{squares, sqrt(residuals) * (1 + 0x1p-20) + unit_rounding(task, scale) + 0x1p-100, 0, 0};
  if (!differences) {
    rounded.offset = warp_sum(offset);
    norm = warp_sum(norm);
    rounded.inverse_norm = norm > 0 ? 1 / sqrt(norm) : norm;
  }
  if (lane == 0) memory.loaded[place] = {rounded, pair.query, pair.slot};
}

// This lane's four columns of the list's centre, scaled, without a wait for shared memory.
__device__ inline float4 own_origin(const ScanListsTask& task, const ScanItem& item, float scale) {
  const int cols = static_cast<int>(task.lists.codec.format.cols);
  const int first = static_cast<int>(threadIdx.x) % 32 * 4;
  if (!task.lists.has_origin()) return {0, 0, 0, 0};
  const float4 four = four_columns(task.lists.centres + static_cast<int64_t>(item.list) * cols, first, cols);
  return {four.x * scale, four.y * scale, four.z * scale, four.w * scale};
}

// Queries of distances, and of products with whole vectors, of up to 128 columns: several at a time, in f32. Of its own
// rounding a difference loses no more than 2^-24 of it, and sums of 128 squares no more than 2^-20, which pair_bounds()
// expects.
template <bool kFirst, typename Operands>
__device__ inline void load_near_queries(const ScanListsTask& task, const ScanItem& item, float scale,
                                         const Operands& operands, const ScanMemory& memory) {
  constexpr int kTogether = 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto warps = static_cast<int>(blockDim.x) / 32 - 1;
  const QueryReader reader(task);
  const bool mine = lane < operands.steps() * 4;
  const bool differences = task.lists.key().has_centred();
  const bool has_radius = task.lists.key().has_distances();
  const auto rounding = static_cast<float>(unit_rounding(task, scale) * (1 + 0x1p-20));
  const float4 origin = own_origin(task, item, scale);
  const ListMaxima list = task.prepared.maxima[item.list];
  for (int first = static_cast<int>(threadIdx.x) / 32; first < item.queries; first += kTogether * warps) {
    ProbePair pairs[kTogether];
    float4 values[kTogether];
    float reaches[kTogether];
    float scales[kTogether];
    KITH_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      const int number = min(first + i * warps, item.queries - 1);
      pairs[i] = task.pairs[item.first_pair + static_cast<uint32_t>(number)];
    }
    KITH_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      values[i] = reader.four(pairs[i].query, 4 * lane);
      reaches[i] = kFirst ? HUGE_VALF : task.reaches[pairs[i].query];
      scales[i] = differences ? scale : task.query_scales[pairs[i].query];
    }
    uint2 halves[kTogether];
    float squares[kTogether];
    float residuals[kTogether];
    KITH_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      // Negated: origin - scale * x.
      const FourFloats wanted = {{fmaf(-values[i].x, scales[i], origin.x), fmaf(-values[i].y, scales[i], origin.y),
                                  fmaf(-values[i].z, scales[i], origin.z), fmaf(-values[i].w, scales[i], origin.w)}};
      halves[i] = halves_of(wanted, 1.0f, {0, 0, 0, 0});
      const FourFloats have = floats_of(halves[i]);
      squares[i] = 0;
      residuals[i] = 0;
      KITH_UNROLL
      for (int c = 0; c < 4; ++c) {
        const float moved = wanted.values[c] - have.values[c];
        squares[i] = fmaf(have.values[c], have.values[c], squares[i]);
        residuals[i] = fmaf(moved, moved, residuals[i]);
      }
    }
    KITH_UNROLL
    for (int apart = 16; apart > 0; apart /= 2) {
      KITH_UNROLL
      for (int i = 0; i < kTogether; ++i) {
        squares[i] += __shfl_xor_sync(0xFFFFFFFFu, squares[i], apart);
        residuals[i] += __shfl_xor_sync(0xFFFFFFFFu, residuals[i], apart);
      }
    }
    KITH_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      if (first + i * warps >= item.queries) break;
      const float norm = sqrtf(squares[i]);
      const float residual = sqrtf(residuals[i]) * (1 + 0x1p-18f) + norm * 0x1p-23f + rounding + 0x1p-60f;
      int place = first + i * warps;
      if (!kFirst) {
        const float nearest = norm * (1 - 0x1p-18f) - list.norm - (residual + list.residual) * (1 + 0x1p-18f);
        if (has_radius && nearest > reaches[i]) continue;  // not where either is NaN
        if (lane == 0) place = atomicAdd(memory.listed, 1);
        place = __shfl_sync(0xFFFFFFFFu, place, 0);
      }
      if (mine) operands.store(lane, place, halves[i]);
      if (lane == 0) {
        memory.loaded[place] = {
            {static_cast<double>(squares[i]), static_cast<double>(residual), 0, 0}, pairs[i].query, pairs[i].slot};
      }
    }
  }
}

// Computes the error bounds of a query's products with a list and publishes them to later steps. Returns the query's
// limit in the second pass; NaN: no value qualifies. `cols` are those of the operands.
template <bool kFirst>
__device__ inline float bound_products(const ScanListsTask& task, uint32_t list, int64_t cols,
                                       const LoadedQuery& loaded, ScanQuery& query) {
  // What device memory has is asked for before bounds are computed.
  ErrorBounds* const worst = task.worst + loaded.query;
  const ErrorBounds so_far = *worst;
  const uint32_t value_start =
      kFirst ? task.value_starts[static_cast<int64_t>(loaded.query) * (kMostFirstSlots + 1) + loaded.slot] : 0;
  const float reach = kFirst ? 0.0f : task.reaches[loaded.query];
  query.query = loaded.query;
  query.slot = loaded.slot;
  query.value_start = value_start;
  query.bounds = pair_bounds(task.lists.key(), cols, task.prepared.maxima[list], loaded.rounded);
  const bool sure = query.bounds.sure();
  if (!sure) task.unsure[loaded.query] = 1;
  raise(&worst->error, so_far.error, query.bounds.error);
  raise(&worst->moved, so_far.moved, query.bounds.moved);
  if constexpr (kFirst) {
    if (task.lists.by_row && sure) query.bounds = with_own_error(query.bounds);
    task.bounds[static_cast<int64_t>(loaded.query) * kMostFirstSlots + loaded.slot] = {query.bounds.error,
                                                                                       query.bounds.moved};
    return NAN;
  } else {
    return sure ? value_limit(task.lists.key(), query.bounds, reach) : NAN;
  }
}

// Computes fp16 values, bounds and limits of the item's queries, and the centre for the decoder. All threads call it,
// after a barrier that follows the previous item. Meanwhile, the last warp calls take() for the next item. Returns the
// number of queries to scan, and ends with a barrier. memory.listed must be 0, and is 0 again afterwards.
template <bool kFirst, typename Operands, typename Take>
__device__ inline int load_queries(const ScanListsTask& task, const ScanItem& item, float scale,
                                   const Operands& operands, const ScanMemory& memory, const Take& take) {
  const bool whole_products = task.lists.kind == KeyKind::inner_product && !task.lists.has_origin();
  const bool near = (task.lists.key().has_centred() || whole_products) && operands.steps() <= kNarrowSteps;
  const auto loaders = static_cast<int>(blockDim.x) / 32 - 1;
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  load_origin(task, item, scale, operands.steps(), memory.origin);
  if (!near) __syncthreads();
  if (warp == loaders) {
    take();
  } else if (near) {
    load_near_queries<kFirst>(task, item, scale, operands, memory);
  } else {
    for (int place = warp; place < item.queries; place += loaders) {
      load_query(task, task.pairs[item.first_pair + static_cast<uint32_t>(place)], place, scale, operands, memory);
    }
  }
  operands.fence();
  __syncthreads();
  const int listed = near && !kFirst ? *memory.listed : item.queries;
  for (auto place = static_cast<int>(threadIdx.x); place < task.cut.group_queries;
       place += static_cast<int>(blockDim.x)) {
    float limit = NAN;  // nothing is below it
    if (place < listed) {
      ScanQuery query;
      limit = bound_products<kFirst>(task, item.list, operands.steps() * 16, memory.loaded[place], query);
      memory.queries[place] = query;
    }
    memory.limits[place] = limit;
  }
  // This barrier of the whole block stands between what was written above and every read of it, the one before an item
  // and the one above between such reads and the next item's writes. (racecheck reports memory.queries all the same in
  // kernels whose warpgroups have barriers of their own, for their staged tiles: what is read after such a barrier it
  // no longer knows to be ordered by the block's. bench/results/h200/racecheck.jsonl has a kernel of twenty lines that
  // shows it.)
  __syncthreads();
  if (threadIdx.x == 0) *memory.listed = 0;  // all have read it
  return listed;
}

}  // namespace kith
