#include "kernels/rerank/few_nearest_cuda.hpp"

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/last_block.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/few_keys_cuda.hpp"
#include "kernels/rerank/candidate_key_cuda.hpp"
#include "kernels/select/rank_select_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kWarps = kFewNearestWarps;
constexpr int kWarpRows = kFewRowsAtOnce / kWarps;  // rows per warp at a time
constexpr int kRoom = kFewNearestRoom;
constexpr int kMostWarps = kFewNearestMostBlocks * kWarps;
constexpr int kMinimaEach = kMostWarps / kFewThreads;  // per thread of the last block
constexpr int kAhead = 4;                              // loads in flight
static_assert(kFewNearestMostK + kFewThreads <= kRoom);
static_assert(kFewNearestMostK <= kRankThreads && kFewThreads == kRankThreads);
static_assert(kFewThreads == kFewNearestThreads && kFewRowsAtOnce == kFewNearestRows);
static_assert(kFewNearestQueries == kFewQueriesMost);

// Stages a query in shared memory, scaled to length 1 for cosine; returns the inverse norm for cosine, else 1. Sets
// `bad` if a value is not finite. Called by all threads of a block.
__device__ double widen_one(const DistanceTask& task, const DeviceRowsView& queries, int64_t query, double* values,
                            bool& bad) {
  widen_query(queries, queries.stored(query), task.cols, 1.0, values);
  __syncthreads();
  double lanes[kRowThreadLanes] = {};
  for (int64_t first = threadIdx.x % kRowThreads * kRowThreadLanes; first < task.cols; first += kCanonicalLanes) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) lanes[i] = fma(values[first + i], values[first + i], lanes[i]);
  }
  const double square = __shfl_sync(kAllLanes, join_row_threads(lanes, row_threads()), 0);
  bad |= !(square - square == 0.0);  // squares of finite floats are finite in double
  if (task.kind != KeyKind::cosine) return 1;
  const double inverse = canonical_inverse_norm(square);
  __syncthreads();
  for (int64_t col = threadIdx.x; col < task.cols; col += kFewThreads) values[col] *= inverse;
  return inverse;
}

// Row n * apart + i of those that a warp of the grid looks at: i < kWarpRows.
struct WarpRows {
  int64_t first;
  int64_t apart;

  __device__ explicit WarpRows(uint32_t warp)
      : first(int64_t{warp} * kWarpRows), apart(static_cast<int64_t>(gridDim.x) * kFewRowsAtOnce) {}
  // The row of this lane among the 32 of a step.
  __device__ int64_t of_lane(int64_t time) const {
    constexpr int kTogether = 32 / kWarpRows;
    return first + (time * kTogether + lane_index() / kWarpRows) * apart + lane_index() % kWarpRows;
  }
};

// State of the last block: rows within the bound belong to some of the warps.
struct LastBlock {
  uint32_t keys[kRankThreads + 4];
  uint16_t warps[kMostWarps];
  int warp_count;
  int count;  // of the list
};

// Slow path if the list has no room for all entries within the bound: goes warp by warp and cuts the list to the k
// smallest whenever it may be full.
__device__ __noinline__ void list_with_cuts(const FewNearestTask& task, int64_t query, LastBlock& last,
                                            uint64_t* list) {
  const auto thread = static_cast<int>(threadIdx.x);
  const auto k = static_cast<int>(task.results.k);
  const uint32_t* const keys = task.distance.keys + query * task.distance.stride;
  const int64_t rows = task.distance.rows.count;
  uint64_t bound = kPadding - 1;
  __syncthreads();
  if (thread == 0) last.count = 0;
  __syncthreads();
  for (int i = 0; i < last.warp_count; ++i) {
    const WarpRows of(last.warps[i]);
    for (int64_t first = of.first; first < rows; first += of.apart * (kFewThreads / kWarpRows)) {
      const int64_t row = first + thread / kWarpRows * of.apart + thread % kWarpRows;
      if (row < rows) {
        const uint64_t entry = pack_neighbor(__ldcg(keys + row), static_cast<uint32_t>(row));
        if (entry <= bound) list[atomicAdd(&last.count, 1)] = entry;
      }
      __syncthreads();
      const int have = last.count;
      __syncthreads();
      if (have + kFewThreads <= kRoom) continue;
      sort_long_list(list, have);
      bound = list[k - 1];
      if (thread == 0) last.count = k;
      __syncthreads();
    }
  }
}

// Puts the k smallest entries of a query, sorted, into `list` and returns their number. The k-th smallest of the
// threads' minima bounds the k-th key, so only warps with a minimum within the bound have such rows. Called by all
// threads of the last block; not inlined into the kernels, so that it takes none of their registers.
__device__ __noinline__ int select_nearest(const FewNearestTask& task, int64_t query, uint64_t* list) {
  __shared__ __align__(16) LastBlock last;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto all_warps = static_cast<int>(gridDim.x) * kWarps;
  const auto k = static_cast<int>(task.results.k);
  const uint32_t* const minima = task.minima + query * all_warps;
  uint32_t mine[kMinimaEach];
  uint32_t least = 0xFFFFFFFFu;
  KITH_UNROLL
  for (int i = 0; i < kMinimaEach; ++i) {
    const int warp = i * kFewThreads + thread;
    mine[i] = warp < all_warps ? __ldcg(minima + warp) : 0xFFFFFFFFu;
  }
  KITH_UNROLL
  for (int i = 0; i < kMinimaEach; ++i) least = min(least, mine[i]);
  if (thread == 0) last.warp_count = last.count = 0;
  const uint32_t bound = kth_of_block(least, k, last.keys);
  KITH_UNROLL
  for (int i = 0; i < kMinimaEach; ++i) {
    const int warp = i * kFewThreads + thread;
    if (warp < all_warps && mine[i] <= bound) {
      last.warps[atomicAdd(&last.warp_count, 1)] = static_cast<uint16_t>(warp);
    }
  }
  __syncthreads();
  const uint32_t* const keys = task.distance.keys + query * task.distance.stride;
  const int64_t rows = task.distance.rows.count;
  for (int i = thread / 32; i < last.warp_count; i += kWarps) {
    const WarpRows of(last.warps[i]);
    for (int64_t time = 0; of.of_lane(time) < rows; time += kAhead) {
      uint64_t entries[kAhead];
      KITH_UNROLL
      for (int ahead = 0; ahead < kAhead; ++ahead) {
        const int64_t row = of.of_lane(time + ahead);
        entries[ahead] = row < rows ? pack_neighbor(__ldcg(keys + row), static_cast<uint32_t>(row)) : kPadding;
      }
      KITH_UNROLL
      for (int ahead = 0; ahead < kAhead; ++ahead) {
        if (entries[ahead] == kPadding || ordered_of(entries[ahead]) > bound) continue;
        const int place = atomicAdd(&last.count, 1);
        if (place < kRoom) list[place] = entries[ahead];
      }
    }
  }
  __syncthreads();
  if (last.count > kRoom) list_with_cuts(task, query, last, list);
  const int found = last.count;
  sort_by_rank(list, found);
  return found < k ? found : k;
}

template <bool kProduct, int kQueries, typename X>
__global__ void __launch_bounds__(kFewThreads, kQueries == 1 ? kFewNearestBlocksTogether : 1)
    few_nearest_kernel(const __grid_constant__ FewNearestTask task, const __grid_constant__ InlineQueries given) {
  extern __shared__ __align__(16) double memory[];  // the queries, then the last block's list
  const DistanceTask& distance = task.distance;
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t count = distance.queries.count;
  uint32_t bad_query = 0xFFFFFFFFu;
  double inverses[kQueries];
  const DeviceRowsView queries = given.rows(distance.queries);
  for (int q = kQueries - 1; q >= 0; --q) {
    bool bad = false;
    inverses[q] = widen_one(distance, queries, q < count ? q : count - 1, memory + q * padded_cols(distance.cols), bad);
    if (bad && q < count) bad_query = static_cast<uint32_t>(q);
  }
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kFewThreads + thread; i < task.zeroed_words;
       i += static_cast<int64_t>(gridDim.x) * kFewThreads) {
    task.zeroed[i] = 0;
  }
  if (task.copied != nullptr && blockIdx.x == 0) {
    const auto* const values = static_cast<const float*>(queries.data);
    for (int64_t i = thread; i < count * distance.cols; i += kFewThreads) task.copied[i] = values[i];
  }
  __syncthreads();
  uint32_t nearest[kQueries];
  KITH_UNROLL
  for (int q = 0; q < kQueries; ++q) nearest[q] = 0xFFFFFFFFu;
  for_each_few_sums<kProduct, kQueries, X, kQueries == 1 ? 8 : 4>(distance, memory, [&](int64_t row, const double(&sums)[kQueries]) {
    const double inverse_x = distance.kind == KeyKind::cosine ? distance.rows.inverse_norms[row] : 1.0;
    KITH_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      if (q >= count) continue;
      const uint32_t key = ordered_key(candidate_key(distance.kind, sums[q], inverses[q], inverse_x));
      distance.keys[q * distance.stride + row] = key;
      nearest[q] = min(nearest[q], key);
    }
  });
  KITH_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    const uint32_t of_warp = __reduce_min_sync(kAllLanes, nearest[q]);
    if (thread % 32 != 0 || q >= count) continue;
    task.minima[(q * gridDim.x + blockIdx.x) * kWarps + thread / 32] = of_warp;
  }
  if (!arrives_last(&task.words->arrived, gridDim.x - 2)) return;  // the counter starts at -1
  auto* const list = vectors<uint64_t>(memory);
  for (int64_t q = 0; q < count; ++q) {
    const int found = select_nearest(task, q, list);
    write_few(task.results, q, list, found);
  }
  if (thread != 0) return;
  const uint32_t bad_row = __ldcg(&task.words->bad_row);
  if (task.report != nullptr) {
    *task.report = {bad_query, task.bad_row == nullptr ? bad_row : min(bad_row, __ldcg(task.bad_row)), 0};
  }
  *task.words = {0xFFFFFFFFu, 0xFFFFFFFFu};  // reset for the next launch
}

template <bool kProduct, typename X>
void launch_for(const FewNearestTask& task, const InlineQueries& given, int multiprocessors, cudaStream_t stream) {
  const int64_t count = task.distance.queries.count;
  const int64_t queries = count == 1 ? 1 : count == 2 ? 2 : kFewQueriesMost;
  const int64_t bytes = std::max<int64_t>(few_shared_bytes(queries, task.distance.cols), kRoom * sizeof(uint64_t));
  const Grid grid =
      Grid::of(few_nearest_blocks(task.distance.rows.count, multiprocessors), kFewThreads).with_shared(bytes);
  const auto launch_with = [&](auto* kernel) {
    allow_all_shared_memory(kernel);
    launch(kernel, grid, stream, task, given);
  };
  if (queries == 1) return launch_with(few_nearest_kernel<kProduct, 1, X>);
  if (queries == 2) return launch_with(few_nearest_kernel<kProduct, 2, X>);
  launch_with(few_nearest_kernel<kProduct, kFewQueriesMost, X>);
}

}  // namespace

void launch_few_nearest(const FewNearestTask& task, const InlineQueries& queries, int multiprocessors,
                        cudaStream_t stream) {
  visit_dtype(task.distance.rows.dtype, [&]<typename X>(StoredAs<X>) {
    if (task.distance.kind == KeyKind::inner_product) return launch_for<true, X>(task, queries, multiprocessors, stream);
    launch_for<false, X>(task, queries, multiprocessors, stream);
  });
}

}  // namespace kith
