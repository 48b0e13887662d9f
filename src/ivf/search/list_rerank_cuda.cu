#include "ivf/search/list_steps_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/stored_key_cuda.hpp"
#include "kernels/select/device_group_cuda.hpp"
#include "kernels/select/key_cut.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int kRerankThreads = 128;
constexpr int kWideThreads = 512;  // if queries are fewer than multiprocessors
constexpr int kWideHeld = 16;      // candidates per thread in that case
constexpr int kSlack = 64;  // up to k / kSlack may pass beyond k

struct AllRows {
  __device__ int count(uint32_t, uint32_t) const { return 0; }
};

// Sorts different entries in shared memory by counting, for each, those before it: quicker than a network where there
// are hardly more than threads.
template <int kThreads>
__device__ void write_sorted(const uint64_t* list, int count, int64_t k, uint64_t* out) {
  const auto thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < count; i += kThreads) {
    const uint64_t mine = list[i];
    int before = 0;
#pragma unroll 8
    for (int j = 0; j < count; ++j) before += list[j] < mine;
    if (before < k) out[before] = mine;
  }
  for (int64_t i = count + thread; i < k; i += kThreads) out[i] = kPadding;
}

// What an estimate is at most for a vector that may be among the k nearest, where k estimates do not exceed `kth`.
__device__ float estimate_limit(const ListRerankTask& task, int64_t query, float kth) {
  const ListKey key = task.lists.key();
  const ErrorBounds worst = task.worst[query];
  const PairBounds bounds{1, 0, worst.error, worst.moved, 1, 0};
  const double unit = query_unit(task.lists, task.prepared, task.queries + query * task.query_stride);
  const float upper = upper_bound(key, bounds, kth);
  return reach_in_range(key, upper, unit) ? value_limit(key, bounds, reach_with_ties(key, upper, unit)) : HUGE_VALF;
}

__device__ void leave(const FailedQueries& left, int64_t query) {
  left.queries[atomicAdd(left.count, 1u)] = static_cast<uint32_t>(query);
}

struct QueryCandidates {
  const ListCandidate* entries;
  const uint32_t* lists;

  __device__ QueryCandidates(const ListRerankTask& task, int64_t query)
      : entries(task.candidates.entries + query * task.candidates.capacity),
        lists(task.candidates.lists + query * task.candidates.capacity) {}
  // What the estimate is no less than, where its bounds are by row: estimates themselves have them subtracted.
  __device__ float upper_estimate(const ListRerankTask& task, int i) const {
    const ListCandidate entry = entries[i];
    return task.lists.by_row ? entry.estimate + task.prepared.estimates_apart(entry.position) : entry.estimate;
  }
  // Position and list, stored in the fields of key and row.
  __device__ uint64_t packed(int i) const { return pack_neighbor(entries[i].position, lists[i]); }
};

// Replaces positions and lists in shared memory by keys and rows.
template <typename Reader, typename Threads>
__device__ inline void compute_keys(const ListRerankTask& task, const Reader& reader, const double* values,
                                    double inverse_q, int64_t code_bytes, uint64_t* list, int count) {
  for (int i = Threads::thread() / kRowThreads; i < count; i += Threads::threads() / kRowThreads) {
    const uint64_t entry = list[i];
    const uint32_t position = ordered_of(entry);
    const uint32_t number = task.lists.rows[position];
    const float key = stored_key(task.lists, reader, values, inverse_q, code_bytes, position, row_of(entry));
    __syncwarp(row_threads());  // all four threads have read the entry
    if (threadIdx.x % kRowThreads == 0) list[i] = pack_neighbor(ordered_key(key), number);
  }
}

constexpr int kWarps = kRerankThreads / 32;
constexpr int kWarpHeld = 32;  // candidates per lane
constexpr int kWarpFew = 8;    // candidates per lane if there are few
constexpr int kWarpRoom = 256;  // candidates not ruled out
constexpr int64_t kWarpMostK = kWarpRoom / 3 * 2;
constexpr int64_t kWarpLeastQueries = 1024;  // fewer do not fill the device

// Lists the candidates that the k-th smallest estimate does not rule out, up to kWarpRoom; returns how many there are.
// By a warp.
template <int kHeld>
__device__ int list_near(const ListRerankTask& task, int64_t query, const QueryCandidates& candidates, int count,
                         uint64_t* list) {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const auto k = static_cast<int>(task.k);
  uint32_t keys[kHeld];
  KITH_UNROLL
  for (int i = 0; i < kHeld; ++i) {
    const int place = i * 32 + lane;
    keys[i] = place < count ? ordered_key(candidates.upper_estimate(task, place)) : kNanKey;
  }
  WarpGroup group;
  const float kth = key_of_ordered(find_cut(group, keys, AllRows(), 0, {k, k + k / kSlack}).key);
  const float limit = estimate_limit(task, query, kth);
  int stays = 0;
  KITH_UNROLL
  for (int i = 0; i < kHeld; ++i) {
    if (i * 32 >= count) break;
    const int place = i * 32 + lane;
    const float estimate =
        task.lists.by_row && place < count ? candidates.entries[place].estimate : key_of_ordered(keys[i]);
    const bool passes = place < count && !(estimate > limit);
    const unsigned who = __ballot_sync(0xFFFFFFFFu, passes);
    const int at = stays + __popc(who & ((1u << lane) - 1));
    if (passes && at < kWarpRoom) list[at] = candidates.packed(place);
    stays += __popc(who);
  }
  return stays;
}

template <typename Reader>
__global__ void __launch_bounds__(kRerankThreads, 6)
    list_rerank_warp_kernel(const __grid_constant__ ListRerankTask task, int64_t code_bytes) {
  extern __shared__ __align__(16) uint64_t memory[];
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const auto cols = static_cast<int>(padded_cols(task.lists.codec.format.cols));
  uint64_t* const list = memory + threadIdx.x / 32 * static_cast<unsigned>(kWarpRoom + cols);
  auto* const values = vectors<double>(list + kWarpRoom);
  ptx::wait_for_kernel_before();
  if (query >= task.query_count) return;
  const uint32_t given = task.candidates.counts[query];
  if (task.unsure[query] != 0 || given > task.candidates.capacity) {
    if (lane == 0) leave(task.left, query);
    return;
  }
  if (given > 32 * kWarpHeld) {
    if (lane == 0) leave(task.crowded, query);
    return;
  }
  const auto count = static_cast<int>(given);
  const auto k = static_cast<int>(task.k);
  const QueryCandidates candidates(task, query);
  int stays = count;
  if (count <= k + k / 16) {
    for (int i = lane; i < count; i += 32) list[i] = candidates.packed(i);
  } else {
    stays = count <= 32 * kWarpFew ? list_near<kWarpFew>(task, query, candidates, count, list)
                                   : list_near<kWarpHeld>(task, query, candidates, count, list);
    if (stays > kWarpRoom) {
      if (lane == 0) leave(task.crowded, query);
      return;
    }
  }
  __syncwarp();
  const double inverse_q = load_query<WarpThreads>(keys_of(task.lists), task.queries + query * task.query_stride, values);
  compute_keys<Reader, WarpThreads>(task, Reader(task.lists.codec, task.lists.codes), values, inverse_q, code_bytes, list, stays);
  __syncwarp();
  if (stays <= 128) {
    sort_run<4>(list, 0, stays);
  } else {
    sort_run<8>(list, 0, stays);
  }
  __syncwarp();
  uint64_t* const out = task.neighbors + query * task.k;
  for (int i = lane; i < k; i += 32) out[i] = i < stays ? list[i] : kPadding;
}

// The same by a block.
template <typename Reader, int kHeld, int kThreads>
__device__ void rerank_query(const ListRerankTask& task, int64_t code_bytes, int64_t query, uint64_t* list,
                             typename BlockGroup<kThreads>::Shared& shared, int& stay) {
  const auto thread = static_cast<int>(threadIdx.x);
  const uint32_t given = task.candidates.counts[query];
  if (task.unsure[query] != 0 || given > task.candidates.capacity) {
    if (thread == 0) leave(task.left, query);
    return;
  }
  const auto count = static_cast<int>(given);
  const auto k = static_cast<int>(task.k);
  auto* const values = vectors<double>(list + task.room);
  const QueryCandidates candidates(task, query);
  const double inverse_q = load_query(keys_of(task.lists), task.queries + query * task.query_stride, values);
  int stays = count;
  if (count <= k + k / 2) {
    for (int i = thread; i < count; i += kThreads) list[i] = candidates.packed(i);
  } else {
    uint32_t keys[kHeld];
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int place = i * kThreads + thread;  // of more than these the first ones' will do
      keys[i] = place < count ? ordered_key(candidates.upper_estimate(task, place)) : kNanKey;
    }
    if (thread == 0) stay = 0;
    BlockGroup<kThreads> group(shared);
    const float kth = key_of_ordered(find_cut(group, keys, AllRows(), 0, {k, k + k / kSlack}).key);
    const float limit = estimate_limit(task, query, kth);
    __syncthreads();
    constexpr int kTogether = 4;  // loads in flight
    for (int first = thread; first < count; first += kTogether * kThreads) {
      float estimates[kTogether];
      KITH_UNROLL
      for (int i = 0; i < kTogether; ++i) {
        const int place = first + i * kThreads;
        estimates[i] = place < count ? candidates.entries[place].estimate : HUGE_VALF;
      }
      KITH_UNROLL
      for (int i = 0; i < kTogether; ++i) {
        const int place = first + i * kThreads;
        if (place >= count || estimates[i] > limit) continue;
        const int at = atomicAdd(&stay, 1);
        if (at < task.room) list[at] = candidates.packed(place);
      }
    }
    __syncthreads();
    stays = stay;
    if (stays > task.room) {
      if (thread == 0) leave(task.left, query);
      return;
    }
  }
  __syncthreads();
  compute_keys<Reader, BlockThreads>(task, Reader(task.lists.codec, task.lists.codes), values, inverse_q, code_bytes, list, stays);
  __syncthreads();
  uint64_t* const out = task.neighbors + query * task.k;
  if (stays <= 2 * kThreads) return write_sorted<kThreads>(list, stays, task.k, out);
  sort_in_place(list, stays);
  for (int64_t i = thread; i < task.k; i += kThreads) out[i] = i < stays ? list[i] : kPadding;
}

// All queries, or the crowded ones.
template <typename Reader, int kHeld, int kThreads>
__global__ void __launch_bounds__(kThreads)
    list_rerank_kernel(const __grid_constant__ ListRerankTask task, int64_t code_bytes, bool crowded) {
  extern __shared__ __align__(16) uint64_t memory[];
  __shared__ typename BlockGroup<kThreads>::Shared shared;
  __shared__ int stay;
  ptx::wait_for_kernel_before();
  const int64_t all = crowded ? int64_t{*task.crowded.count} : task.query_count;
  for (int64_t i = blockIdx.x; i < all; i += gridDim.x) {
    __syncthreads();  // the previous query is done
    rerank_query<Reader, kHeld, kThreads>(task, code_bytes, crowded ? int64_t{task.crowded.queries[i]} : i, memory, shared, stay);
  }
}

}  // namespace

void launch_list_rerank(const ListRerankTask& task, cudaStream_t stream) {
  if (task.query_count == 0) return;
  const CodeFormat& format = task.lists.codec.format;
  const int64_t cols = padded_cols(format.cols);
  const int64_t shared = 8 * (task.room + cols);
  const bool by_warps = task.query_count >= kWarpLeastQueries && task.k <= kWarpMostK && task.room >= kWarpRoom;
  const bool few = task.candidates.capacity <= 16 * kRerankThreads;
  const bool wide = task.query_count < task.multiprocessors;
  static_assert(32 * kRerankThreads == kMostListCandidates);
  visit_reader(format, [&](auto tag) {
    using Reader = typename decltype(tag)::type;
    if (by_warps) {
      const auto kernel = list_rerank_warp_kernel<Reader>;
      allow_all_shared_memory(kernel);
      const Grid grid = Grid::of(divide_up(task.query_count, kWarps), kRerankThreads);
      launch(kernel, grid.with_shared(8 * kWarps * (kWarpRoom + cols)).chained(), stream, task, format.bytes());
    }
    if (wide) {
      const auto kernel = list_rerank_kernel<Reader, kWideHeld, kWideThreads>;
      allow_all_shared_memory(kernel);
      return launch(kernel, Grid::of(task.query_count, kWideThreads).with_shared(shared).chained(), stream, task,
                    format.bytes(), false);
    }
    const auto kernel = few ? list_rerank_kernel<Reader, 16, kRerankThreads> : list_rerank_kernel<Reader, 32, kRerankThreads>;
    allow_all_shared_memory(kernel);
    const int64_t blocks =
        by_warps ? std::min<int64_t>(task.query_count, 8 * task.multiprocessors) : task.query_count;
    launch(kernel, Grid::of(blocks, kRerankThreads).with_shared(shared).chained(), stream, task, format.bytes(),
           by_warps);
  });
}

}  // namespace kith
