#include "graph/cells/cell_offers_cuda.hpp"

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "graph/cells/cell_ranks_cuda.hpp"
#include "graph/working_lists.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/distance/row_threads_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPairsPerBlock = kThreads / kRowThreads;
constexpr int kMostBlocks = 132 * 32;  // each goes on until no pairs are left
constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr int64_t kStagedList = 64;  // the longest that comes to shared memory

// What a pair's sum is made of.
enum class Sum { product, difference, unit_difference };

constexpr Sum sum_of(KeyKind kind) {
  return kind == KeyKind::inner_product ? Sum::product : kind == KeyKind::cosine ? Sum::unit_difference : Sum::difference;
}

// The canonical sum of two rows by four threads, right in the first of them.
template <Sum kSum, typename T>
__device__ double pair_sum(const T* q, const T* x, int64_t cols, bool aligned, double inverse_q, double inverse_x) {
  const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
  double lanes[kRowThreadLanes] = {};
  constexpr int kAhead = 2;  // loads of each row that are under way at a time
  for (int64_t start = kRowThreadLanes * thread; start < cols; start += kAhead * kCanonicalLanes) {
    Four<T> ours[kAhead];
    Four<T> theirs[kAhead];
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      ours[ahead] = load_four(q, start + ahead * kCanonicalLanes, cols, aligned);
      theirs[ahead] = load_four(x, start + ahead * kCanonicalLanes, cols, aligned);
    }
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {  // zeros past the last column change nothing
      KITH_UNROLL
      for (int i = 0; i < kRowThreadLanes; ++i) {
        const double a = static_cast<double>(ours[ahead].values[i]);
        const double b = static_cast<double>(theirs[ahead].values[i]);
        if constexpr (kSum == Sum::product) {
          lanes[i] = fma(a, b, lanes[i]);
        } else {
          const double difference = kSum == Sum::unit_difference ? a * inverse_q - b * inverse_x : a - b;
          lanes[i] = fma(difference, difference, lanes[i]);
        }
      }
    }
  }
  return join_row_threads(lanes, row_threads());
}

__device__ float key_of(KeyKind kind, double sum, double inverse_q, double inverse_x) {
  switch (kind) {
    case KeyKind::inner_product: return canonical_key<KeyKind::inner_product>(sum, 0, 0);
    case KeyKind::cosine: return canonical_key<KeyKind::cosine>(sum, inverse_q, inverse_x);
    case KeyKind::l2: return canonical_key<KeyKind::l2>(sum, 0, 0);
    default: return canonical_key<KeyKind::squared_l2>(sum, 0, 0);
  }
}

__device__ void offer(const DeviceWorkingLists& lists, const CellInboxes& inboxes, uint32_t row, uint64_t neighbor) {
  const uint64_t last = lists.entries[(static_cast<int64_t>(row) + 1) * lists.length - 1];
  if (neighbor >= without_flag(last)) return;
  const uint32_t place = atomicAdd(inboxes.counts + row, 1u);
  if (place < inboxes.slots) {
    inboxes.entries[static_cast<int64_t>(row) * inboxes.slots + place] = neighbor;
    return;
  }
  const uint32_t spilled = atomicAdd(inboxes.spilled_count, 1u);
  if (spilled < inboxes.capacity) inboxes.spilled[spilled] = {neighbor, row, 0};
}

template <Sum kSum, typename T>
__global__ void __launch_bounds__(kThreads) pair_keys_kernel(PairKeysTask task) {
  const uint32_t count = min(*task.count, task.capacity);
  const bool aligned = rows_aligned(static_cast<const T*>(task.rows.data), task.rows.stride);
  const uint32_t step = gridDim.x * kPairsPerBlock;
  for (uint32_t at = blockIdx.x * kPairsPerBlock + threadIdx.x / kRowThreads; at < count; at += step) {
    const uint64_t pair = task.pairs[at];
    const uint32_t query = task.place_rows[task.slots[pair >> 32]];
    const uint32_t row = task.place_rows[static_cast<uint32_t>(pair)];
    if (query == row) continue;  // all four threads alike
    double inverse_q = 1;
    double inverse_x = 1;
    if (kSum == Sum::unit_difference) {
      inverse_q = task.rows.inverse_norms[query];
      inverse_x = task.rows.inverse_norms[row];
    }
    const double sum = pair_sum<kSum>(task.rows.row<T>(query), task.rows.row<T>(row), task.cols, aligned, inverse_q,
                                      inverse_x);
    if (threadIdx.x % kRowThreads != 0) continue;
    const uint32_t key = ordered_key(key_of(task.kind, sum, inverse_q, inverse_x));
    offer(task.lists, task.inboxes, query, pack_neighbor(key, row));
    if (task.to_rows) offer(task.lists, task.inboxes, row, pack_neighbor(key, query));
  }
}

__global__ void __launch_bounds__(kThreads)
    offer_again_kernel(DeviceWorkingLists lists, const SpilledOffer* from, int64_t count, CellInboxes inboxes) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < count) offer(lists, inboxes, from[at].row, from[at].neighbor);
}

// A warp's entries in shared memory, sorted; `count` is a power of two.
__device__ void sort_entries(uint64_t* entries, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int size = 2; size <= count; size *= 2) {
    for (int apart = size / 2; apart > 0; apart /= 2) {
      for (int i = lane; i < count / 2; i += 32) {
        const int low = 2 * i - i % apart;
        const int high = low + apart;
        const bool up = (low & size) == 0;
        const uint64_t a = entries[low];
        const uint64_t b = entries[high];
        if ((a > b) == up) {
          entries[low] = b;
          entries[high] = a;
        }
      }
      __syncwarp();
    }
  }
}

// Whether a list has a neighbour, flag or not.
__device__ bool has(const uint64_t* list, int64_t length, uint64_t neighbor) {
  int64_t first = 0;
  int64_t end = length;
  while (first < end) {
    const int64_t middle = (first + end) / 2;
    if (without_flag(list[middle]) < neighbor) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first < length && without_flag(list[first]) == neighbor && list[first] != kPadding;
}

// Leaves sorted entries that are neither twice there nor in the list; returns how many.
__device__ int leave_new(uint64_t* entries, int count, const uint64_t* list, int64_t length) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int left = 0;
  uint64_t before = kPadding;  // the last of the lanes before
  for (int first = 0; first < count; first += 32) {
    const int i = first + lane;
    const uint64_t entry = i < count ? entries[i] : kPadding;
    uint64_t previous = __shfl_up_sync(kAll, entry, 1);
    if (lane == 0) previous = before;
    before = __shfl_sync(kAll, entry, 31);
    const bool stays = entry != kPadding && entry != previous && !has(list, length, entry);
    const unsigned staying = __ballot_sync(kAll, stays);
    if (stays) entries[left + __popc(staying & ((1u << lane) - 1))] = entry;
    left += __popc(staying);
    __syncwarp();
  }
  return left;
}

// From the back, so that what is read has not been written to.
__device__ void merge_into(uint64_t* list, int64_t length, const uint64_t* entries, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int64_t first = (length - 1) / 32 * 32; first >= 0; first -= 32) {
    const int64_t place = first + lane;
    uint64_t value = 0;
    int taken = 0;  // entries among the first `place` of the merged list
    if (place < length) {
      int end = place < count ? static_cast<int>(place) : count;
      while (taken < end) {
        const int middle = (taken + end + 1) / 2;
        if (entries[middle - 1] < without_flag(list[place - middle])) {
          taken = middle;
        } else {
          end = middle - 1;
        }
      }
      value = list[place - taken];
      if (taken < count && entries[taken] < without_flag(value)) value = entries[taken];
    }
    __syncwarp();
    if (place < length) list[place] = value;
    __syncwarp();
    if (__all_sync(kAll, taken == 0 && (place >= length || count == 0 || entries[0] >= without_flag(value)))) break;
  }
}

// A warp looks at the counts of 32 rows and works on those that have offers; a list comes to shared memory if it is short.
__global__ void __launch_bounds__(kThreads) merge_kernel(DeviceWorkingLists lists, CellInboxes inboxes, int64_t staged) {
  extern __shared__ uint64_t shared[];
  uint64_t* const mine = shared + threadIdx.x / 32 * (inboxes.slots + staged);
  uint64_t* const here = mine + inboxes.slots;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32) * 32;
  const uint32_t counted = first + lane < lists.rows ? inboxes.counts[first + lane] : 0;
  if (counted > 0) inboxes.counts[first + lane] = 0;
  for (unsigned waiting = __ballot_sync(kAll, counted > 0); waiting != 0; waiting &= waiting - 1) {
    const int turn = __ffs(static_cast<int>(waiting)) - 1;
    const int64_t row = first + turn;
    const int count = min(static_cast<int>(__shfl_sync(kAll, counted, turn)), static_cast<int>(inboxes.slots));
    int room = 1;
    while (room < count) room *= 2;
    uint64_t* const stored = lists.entries + row * lists.length;
    uint64_t* const list = staged > 0 ? here : stored;
    for (int64_t i = lane; i < staged && i < lists.length; i += 32) here[i] = stored[i];
    for (int i = lane; i < room; i += 32) mine[i] = i < count ? inboxes.entries[row * inboxes.slots + i] : kPadding;
    __syncwarp();
    sort_entries(mine, room);
    const int fresh = leave_new(mine, count, list, lists.length);
    if (fresh > 0) {
      merge_into(list, lists.length, mine, fresh);
      for (int64_t i = lane; i < staged && i < lists.length; i += 32) stored[i] = here[i];
    }
    __syncwarp();
  }
}

__global__ void __launch_bounds__(kThreads) all_pairs_kernel(AllPairsTask task) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= task.slot_count * task.place_count) return;
  const int64_t slot = at / task.place_count;
  const int64_t place = task.first_place + at % task.place_count;
  if (task.slots[slot] == kNoPlace || task.place_rows[place] == kNoPlace) return;
  if (*static_cast<volatile uint32_t*>(task.count) >= kManyPairs) return;
  const uint32_t out = atomicAdd(task.count, 1u);
  if (out < task.capacity) task.pairs[out] = static_cast<uint64_t>(task.first_slot + slot) << 32 | static_cast<uint64_t>(place);
}

}  // namespace

void launch_pair_keys(const PairKeysTask& task, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(divide_up(task.capacity, kPairsPerBlock), kMostBlocks));
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    switch (sum_of(task.kind)) {
      case Sum::product: return pair_keys_kernel<Sum::product, T><<<blocks, kThreads, 0, stream>>>(task);
      case Sum::unit_difference:
        return pair_keys_kernel<Sum::unit_difference, T><<<blocks, kThreads, 0, stream>>>(task);
      default: return pair_keys_kernel<Sum::difference, T><<<blocks, kThreads, 0, stream>>>(task);
    }
  });
  KITH_CUDA_CHECK_LAUNCH("pair_keys_kernel");
}

void launch_merge_inboxes(const DeviceWorkingLists& lists, const CellInboxes& inboxes, cudaStream_t stream) {
  if (lists.rows == 0) return;
  const auto blocks = static_cast<unsigned>(divide_up(lists.rows, 32 * kWarps));
  const int64_t staged = lists.length <= kStagedList ? kStagedList : 0;
  const auto shared = static_cast<size_t>(kWarps * (inboxes.slots + staged) * 8);
  merge_kernel<<<blocks, kThreads, shared, stream>>>(lists, inboxes, staged);
  KITH_CUDA_CHECK_LAUNCH("merge_kernel");
}

void launch_offer_again(const DeviceWorkingLists& lists, const SpilledOffer* from, int64_t count,
                        const CellInboxes& inboxes, cudaStream_t stream) {
  if (count == 0) return;
  offer_again_kernel<<<static_cast<unsigned>(divide_up(count, kThreads)), kThreads, 0, stream>>>(lists, from, count,
                                                                                                 inboxes);
  KITH_CUDA_CHECK_LAUNCH("offer_again_kernel");
}

void launch_all_pairs(const AllPairsTask& task, cudaStream_t stream) {
  const int64_t threads = task.slot_count * task.place_count;
  if (threads == 0) return;
  all_pairs_kernel<<<static_cast<unsigned>(divide_up(threads, kThreads)), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("all_pairs_kernel");
}

}  // namespace kith
