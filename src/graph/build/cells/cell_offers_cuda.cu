#include "graph/build/cells/cell_offers_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "graph/build/cells/cell_ranks_cuda.hpp"
#include "graph/lists/pairs/pair_key_cuda.hpp"
#include "graph/lists/warp_lists_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPairsPerBlock = kThreads / kRowThreads;
constexpr int kMostBlocks = 132 * 32;  // each goes on until no pairs are left
constexpr int64_t kStagedList = 128;  // the longest that comes to shared memory
static_assert(kWarps * (kMostInboxSlots + kStagedList) * 8 <= 48 * 1024);

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

__global__ void __launch_bounds__(kThreads) pair_keys_kernel(const __grid_constant__ PairKeysTask task) {
  const uint32_t count = min(*task.count, task.capacity);
  const uint32_t step = gridDim.x * kPairsPerBlock;
  const uint32_t ahead = threadIdx.x % 32 / kRowThreads;  // of the warp's first pair
  for (uint32_t first = blockIdx.x * kPairsPerBlock + threadIdx.x / 32 * (32 / kRowThreads); first < count;
       first += step) {
    const uint64_t pair = task.pairs[min(first + ahead, count - 1)];
    const uint32_t query = task.place_rows[task.slots[pair >> 32]];
    const uint32_t row = task.place_rows[static_cast<uint32_t>(pair)];
    const float distance = product_pair_key(task.rows, query, row);
    if (first + ahead >= count || query == row || threadIdx.x % kRowThreads != 0) continue;
    const uint32_t key = ordered_key(distance);
    const auto number_of = [&](uint32_t of) { return task.numbers == nullptr ? of : task.numbers[of]; };
    if (query < task.lists.rows) offer(task.lists, task.inboxes, query, pack_neighbor(key, number_of(row)));
    if (task.to_rows && row < task.lists.rows) {
      offer(task.lists, task.inboxes, row, pack_neighbor(key, number_of(query)));
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    offer_again_kernel(DeviceWorkingLists lists, const SpilledOffer* from, int64_t count, CellInboxes inboxes) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < count) offer(lists, inboxes, from[at].row, from[at].neighbor);
}

// A warp looks at the counts of 32 rows and works on those that have offers; a list comes to shared memory if it is
// short.
__global__ void __launch_bounds__(kThreads)
    merge_kernel(DeviceWorkingLists lists, CellInboxes inboxes, int64_t staged) {
  extern __shared__ uint64_t shared[];
  uint64_t* const mine = shared + threadIdx.x / 32 * (inboxes.slots + staged);
  uint64_t* const here = mine + inboxes.slots;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32) * 32;
  const uint32_t counted = first + lane < lists.rows ? inboxes.counts[first + lane] : 0;
  if (counted > 0) inboxes.counts[first + lane] = 0;
  for (unsigned waiting = __ballot_sync(kAllLanes, counted > 0); waiting != 0; waiting &= waiting - 1) {
    const int turn = __ffs(static_cast<int>(waiting)) - 1;
    const int64_t row = first + turn;
    const int count = min(static_cast<int>(__shfl_sync(kAllLanes, counted, turn)), static_cast<int>(inboxes.slots));
    int room = 1;
    while (room < count) room *= 2;
    uint64_t* const stored = lists.entries + row * lists.length;
    uint64_t* const list = staged > 0 ? here : stored;
    for (int64_t i = lane; i < staged; i += 32) here[i] = stored[i];
    for (int i = lane; i < room; i += 32) mine[i] = i < count ? inboxes.entries[row * inboxes.slots + i] : kPadding;
    __syncwarp();
    sort_neighbors(mine, room);
    const int fresh = leave_new(mine, count, list, lists.length);
    if (fresh > 0) {
      merge_into(list, lists.length, mine, fresh);
      for (int64_t i = lane; i < staged; i += 32) stored[i] = here[i];
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
  if (out < task.capacity) {
    task.pairs[out] = static_cast<uint64_t>(task.first_slot + slot) << 32 | static_cast<uint64_t>(place);
  }
}

}  // namespace

void launch_pair_keys(const PairKeysTask& task, cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(divide_up(task.capacity, kPairsPerBlock), kMostBlocks);
  launch(pair_keys_kernel, Grid::of(blocks, kThreads), stream, task);
}

void launch_merge_inboxes(const DeviceWorkingLists& lists, const CellInboxes& inboxes, cudaStream_t stream) {
  const int64_t staged = lists.length <= kStagedList ? lists.length : 0;
  const int64_t shared_bytes = kWarps * (inboxes.slots + staged) * 8;
  launch(merge_kernel, Grid::over(lists.rows, kThreads).with_shared(shared_bytes), stream, lists, inboxes, staged);
}

void launch_offer_again(const DeviceWorkingLists& lists, const SpilledOffer* from, int64_t count,
                        const CellInboxes& inboxes, cudaStream_t stream) {
  launch(offer_again_kernel, Grid::over(count, kThreads), stream, lists, from, count, inboxes);
}

void launch_all_pairs(const AllPairsTask& task, cudaStream_t stream) {
  launch(all_pairs_kernel, Grid::over(task.slot_count * task.place_count, kThreads), stream, task);
}

}  // namespace kith
