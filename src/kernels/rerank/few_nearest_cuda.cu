#include "kernels/rerank/few_nearest_cuda.hpp"

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/few_keys_cuda.hpp"
#include "kernels/rerank/candidate_key_cuda.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kWarps = kFewNearestWarps;
constexpr int kWarpRows = kFewRowsAtOnce / kWarps;  // of a warp at once
constexpr int kRoom = kFewNearestRoom;
constexpr int kAhead = 4;  // loads that are under way at a time
constexpr int kMostChosen = static_cast<int>(kFewNearestMostK);
static_assert(kMostChosen + kAhead * kFewThreads <= kRoom);
static_assert(kFewThreads == kFewNearestThreads && kFewRowsAtOnce == kFewNearestRows);
static_assert(kFewNearestQueries == kFewQueriesMost);

// A query in shared memory, for cosine of length 1; returns cosine's inverse norm, else 1. `bad` is set where a value
// is not finite. All threads of a block.
__device__ double widen_one(const DistanceTask& task, int64_t query, double* values, bool& bad) {
  const DeviceRowsView& queries = task.queries;
  widen_query(queries, queries.stored(query), task.cols, 1.0, values);
  __syncthreads();
  double lanes[kRowThreadLanes] = {};
  for (int64_t first = threadIdx.x % kRowThreads * kRowThreadLanes; first < task.cols; first += kCanonicalLanes) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) lanes[i] = fma(values[first + i], values[first + i], lanes[i]);
  }
  const double square = __shfl_sync(kAllLanes, join_row_threads(lanes, row_threads()), 0);
  bad |= !(square - square == 0.0);  // the squares of what is finite are too
  if (task.kind != KeyKind::cosine) return 1;
  const double inverse = canonical_inverse_norm(square);
  __syncthreads();
  for (int64_t col = threadIdx.x; col < task.cols; col += kFewThreads) values[col] *= inverse;
  return inverse;
}

struct Minima {
  uint64_t* blocks;  // the nearest of each block's rows
  uint64_t* warps;   // and of each warp's
};

__device__ Minima minima_of(const FewNearestTask& task, int64_t query) {
  uint64_t* const first = task.minima + query * gridDim.x * (kWarps + 1);
  return {first, first + gridDim.x};
}

// What the last block does is no part of the kernels, so that it is compiled once and takes none of their registers.
__device__ __noinline__ void sort_list(uint64_t* list, int count) { sort_in_place(list, count); }

// The k smallest entries of a query, sorted, in `list`; returns how many there are. Entries up to a bound are looked at
// in three steps: the k-th smallest of the blocks' minima is a bound of the k-th of all; then the warps with such
// entries, which are of the first k blocks; then their rows. All threads of the last block.
__device__ __noinline__ int select_nearest(const FewNearestTask& task, int64_t query, uint64_t* list) {
  __shared__ uint32_t chosen[kMostChosen * kWarps];  // warps
  __shared__ int count;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto blocks = static_cast<int>(gridDim.x);
  const auto k = static_cast<int>(task.results.k);
  const Minima minima = minima_of(task, query);
  __syncthreads();
  for (int i = thread; i < blocks; i += kFewThreads) list[i] = __ldcg(minima.blocks + i);
  if (thread == 0) count = 0;
  __syncthreads();
  sort_list(list, blocks);
  uint64_t bound = k <= blocks ? list[k - 1] : kPadding - 1;
  const int looked_at = (k < blocks ? k : blocks) * kWarps;
  for (int i = thread; i < looked_at; i += kFewThreads) {
    const auto block = static_cast<int>(row_of(list[i / kWarps]) / kFewRowsAtOnce) % blocks;
    const int warp = block * kWarps + i % kWarps;
    if (__ldcg(minima.warps + warp) <= bound) chosen[atomicAdd(&count, 1)] = static_cast<uint32_t>(warp);
  }
  __syncthreads();
  const int warps = count;
  __syncthreads();
  if (thread == 0) count = 0;
  __syncthreads();
  const uint32_t* const keys = task.distance.keys + query * task.distance.stride;
  const auto rows = static_cast<int64_t>(task.distance.rows.count);
  const int64_t apart = int64_t{blocks} * kFewRowsAtOnce;  // rows of a warp that follow each other
  const auto each = static_cast<int>((rows + apart - 1) / apart) * kWarpRows;
  const int64_t total = int64_t{warps} * each;
  for (int64_t start = 0; start < total; start += kAhead * kFewThreads) {
    uint64_t entries[kAhead];
    KITH_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      const int64_t at = start + i * kFewThreads + thread;
      entries[i] = kPadding;
      if (at >= total) continue;
      const auto warp = static_cast<int64_t>(chosen[at / each]);
      const auto place = static_cast<int>(at % each);
      const int64_t row = warp * kWarpRows + place / kWarpRows * apart + place % kWarpRows;
      if (row < rows) entries[i] = pack_neighbor(__ldcg(keys + row), static_cast<uint32_t>(row));
    }
    KITH_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      if (entries[i] <= bound) list[atomicAdd(&count, 1)] = entries[i];
    }
    __syncthreads();
    const int have = count;
    __syncthreads();
    if (have + kAhead * kFewThreads <= kRoom) continue;
    sort_list(list, have);
    bound = list[k - 1];
    if (thread == 0) count = k;
    __syncthreads();
  }
  const int found = count;
  sort_list(list, found);
  return found < k ? found : k;
}

template <bool kProduct, int kQueries, typename X>
__global__ void __launch_bounds__(kFewThreads, kQueries == 1 ? kFewNearestBlocksTogether : 1)
    few_nearest_kernel(const __grid_constant__ FewNearestTask task) {
  extern __shared__ __align__(16) double memory[];  // the queries, then the last block's list
  __shared__ uint64_t of_warps[kQueries][kWarps];
  __shared__ bool last;
  const DistanceTask& distance = task.distance;
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t count = distance.queries.count;
  uint32_t bad_query = 0xFFFFFFFFu;
  double inverses[kQueries];
  for (int q = kQueries - 1; q >= 0; --q) {
    bool bad = false;
    inverses[q] = widen_one(distance, q < count ? q : count - 1, memory + q * padded_cols(distance.cols), bad);
    if (bad && q < count) bad_query = static_cast<uint32_t>(q);
  }
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kFewThreads + thread; i < task.zeroed_words;
       i += static_cast<int64_t>(gridDim.x) * kFewThreads) {
    task.zeroed[i] = 0;
  }
  __syncthreads();
  uint64_t nearest[kQueries];
  KITH_UNROLL
  for (int q = 0; q < kQueries; ++q) nearest[q] = kPadding;
  for_each_few_sums<kProduct, kQueries, X>(distance, memory, [&](int64_t row, const double(&sums)[kQueries]) {
    const double inverse_x = distance.kind == KeyKind::cosine ? distance.rows.inverse_norms[row] : 1.0;
    KITH_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      if (q >= count) continue;
      const uint32_t key = ordered_key(candidate_key(distance.kind, sums[q], inverses[q], inverse_x));
      distance.keys[q * distance.stride + row] = key;
      const uint64_t entry = pack_neighbor(key, static_cast<uint32_t>(row));
      nearest[q] = entry < nearest[q] ? entry : nearest[q];
    }
  });
  KITH_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    const uint64_t of_warp = warp_least(nearest[q]);
    if (thread % 32 != 0 || q >= count) continue;
    of_warps[q][thread / 32] = of_warp;
    minima_of(task, q).warps[blockIdx.x * kWarps + thread / 32] = of_warp;
  }
  __syncthreads();
  if (thread < count) {
    uint64_t least = of_warps[thread][0];
    for (int warp = 1; warp < kWarps; ++warp) least = min(least, of_warps[thread][warp]);
    minima_of(task, thread).blocks[blockIdx.x] = least;
  }
  __threadfence();
  __syncthreads();
  if (thread == 0) last = atomicAdd(task.arrived, 1u) == gridDim.x - 2;  // it began at -1
  __syncthreads();
  if (!last) return;
  __threadfence();
  auto* const list = vectors<uint64_t>(memory);
  for (int64_t q = 0; q < count; ++q) {
    const int found = select_nearest(task, q, list);
    write_few(task.results, q, list, found);
  }
  if (thread == 0 && task.report != nullptr) {
    *task.report = {bad_query, task.bad_row == nullptr ? 0xFFFFFFFFu : __ldcg(task.bad_row), 0};
  }
}

template <bool kProduct, typename X>
void launch_for(const FewNearestTask& task, int multiprocessors, cudaStream_t stream) {
  const int64_t count = task.distance.queries.count;
  const int64_t queries = count == 1 ? 1 : count == 2 ? 2 : kFewQueriesMost;
  const int64_t bytes = std::max<int64_t>(few_shared_bytes(queries, task.distance.cols), kRoom * sizeof(uint64_t));
  const Grid grid =
      Grid::of(few_nearest_blocks(task.distance.rows.count, multiprocessors), kFewThreads).with_shared(bytes);
  const auto launch_with = [&](auto* kernel) {
    allow_all_shared_memory(kernel);
    launch(kernel, grid, stream, task);
  };
  if (queries == 1) return launch_with(few_nearest_kernel<kProduct, 1, X>);
  if (queries == 2) return launch_with(few_nearest_kernel<kProduct, 2, X>);
  launch_with(few_nearest_kernel<kProduct, kFewQueriesMost, X>);
}

}  // namespace

void launch_few_nearest(const FewNearestTask& task, int multiprocessors, cudaStream_t stream) {
  visit_dtype(task.distance.rows.dtype, [&]<typename X>(StoredAs<X>) {
    if (task.distance.kind == KeyKind::inner_product) return launch_for<true, X>(task, multiprocessors, stream);
    launch_for<false, X>(task, multiprocessors, stream);
  });
}

}  // namespace kith
