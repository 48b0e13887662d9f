#include "ivf/list_rerank_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/chained_launch.hpp"
#include "cuda/device_core.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "ivf/query_unit_cuda.hpp"
#include "ivf/stored_key_cuda.hpp"
#include "kernels/select/device_group_cuda.hpp"
#include "kernels/select/key_cut.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"

#include <cmath>

namespace kith {
namespace {

constexpr int kRerankThreads = 128;
constexpr int kSlack = 64;  // one in so many may pass beyond k

struct AllRows {
  __device__ int count(uint32_t, uint32_t) const { return 0; }
};

// Sorts different entries in shared memory by counting, for each, those before it: quicker than a network where there
// are hardly more than threads.
constexpr int kMostCounted = 2 * kRerankThreads;
__device__ void write_sorted(const uint64_t* list, int count, int64_t k, uint64_t* out) {
  const auto thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < count; i += kRerankThreads) {
    const uint64_t mine = list[i];
    int before = 0;
#pragma unroll 8
    for (int j = 0; j < count; ++j) before += list[j] < mine;
    if (before < k) out[before] = mine;
  }
  for (int64_t i = count + thread; i < k; i += kRerankThreads) out[i] = kPadding;
}

template <typename Reader, int kHeld>
__global__ void __launch_bounds__(kRerankThreads)
    list_rerank_kernel(const __grid_constant__ ListRerankTask task, int64_t code_bytes) {
  extern __shared__ __align__(16) uint64_t memory[];
  __shared__ typename BlockGroup<kRerankThreads>::Shared shared;
  __shared__ int stay;
  const int64_t query = blockIdx.x;
  const auto thread = static_cast<int>(threadIdx.x);
  ptx::wait_for_kernel_before();
  const uint32_t given = task.candidates.counts[query];
  const auto leave = [&] {
    if (thread == 0) task.left.queries[atomicAdd(task.left.count, 1u)] = static_cast<uint32_t>(query);
  };
  if (task.unsure[query] != 0 || given > task.candidates.capacity) return leave();
  const auto count = static_cast<int>(given);
  const auto k = static_cast<int>(task.k);
  uint64_t* const list = memory;
  auto* const values = reinterpret_cast<double*>(memory + task.room);
  const float* const row = task.queries + query * task.query_stride;
  const ListCandidate* const entries = task.candidates.entries + query * task.candidates.capacity;
  const uint32_t* const entry_lists = task.candidates.lists + query * task.candidates.capacity;
  const double inverse_q = load_query(task.lists, row, values);
  // What is not ruled out is listed: position and list, in the places of keys and rows.
  int stays = count;
  if (count <= k + k / 2) {
    for (int i = thread; i < count; i += kRerankThreads) list[i] = pack_neighbor(entries[i].position, entry_lists[i]);
  } else {
    uint32_t keys[kHeld];
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int place = i * kRerankThreads + thread;
      keys[i] = place < count ? ordered_key(entries[place].estimate) : kNanKey;
    }
    if (thread == 0) stay = 0;
    BlockGroup<kRerankThreads> group(shared);
    const float kth = key_of_ordered(find_cut(group, keys, AllRows(), 0, {k, k + k / kSlack}).key);
    const KeyKind kind = task.lists.kind;
    const ErrorBounds worst = task.worst[query];
    const PairBounds bounds{1, 0, worst.error, worst.moved, 1, 0};
    const double unit = query_unit(task.lists, task.prepared, row);
    const float upper = upper_bound(kind, bounds, kth);
    const float limit =
        reach_in_range(kind, upper, unit) ? value_limit(kind, bounds, reach_with_ties(kind, upper, unit)) : HUGE_VALF;
    __syncthreads();
    for (int place = thread; place < count; place += kRerankThreads) {
      const ListCandidate entry = entries[place];
      if (entry.estimate > limit) continue;
      const int at = atomicAdd(&stay, 1);
      if (at < task.room) list[at] = pack_neighbor(entry.position, entry_lists[place]);
    }
    __syncthreads();
    stays = stay;
    if (stays > task.room) return leave();
  }
  __syncthreads();
  const Reader reader(task.lists);
  for (int i = thread / kRowThreads; i < stays; i += kRerankThreads / kRowThreads) {
    const uint64_t entry = list[i];
    const uint32_t position = ordered_of(entry);
    const uint32_t number = task.lists.rows[position];
    const float key = stored_key(task.lists, reader, values, inverse_q, code_bytes, position, row_of(entry));
    if (thread % kRowThreads == 0) list[i] = pack_neighbor(ordered_key(key), number);
  }
  __syncthreads();
  uint64_t* const out = task.neighbors + query * task.k;
  if (stays <= kMostCounted) return write_sorted(list, stays, task.k, out);
  sort_in_place(list, stays);
  for (int64_t i = thread; i < task.k; i += kRerankThreads) out[i] = i < stays ? list[i] : kPadding;
}

}  // namespace

void launch_list_rerank(const ListRerankTask& task, cudaStream_t stream) {
  if (task.query_count == 0) return;
  const CodeFormat& format = task.lists.codec.format;
  const int64_t bytes = 8 * (task.room + padded_cols(format.cols));
  const bool few = task.candidates.capacity <= 16 * kRerankThreads;
  static_assert(32 * kRerankThreads == kMostListCandidates);
  visit_reader(format, [&](auto tag) {
    using Reader = typename decltype(tag)::type;
    const auto kernel = few ? list_rerank_kernel<Reader, 16> : list_rerank_kernel<Reader, 32>;
    allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
    launch_chained({task.query_count, kRerankThreads, bytes, stream}, "launch of list_rerank_kernel", kernel, task,
                   format.bytes());
  });
}

}  // namespace kith
