#include "graph/lists/working_lists_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/lists/warp_lists_cuda.hpp"

#include <algorithm>
#include <numeric>
#include <string>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int64_t kBlockBytes = int64_t{64} << 10;  // of shared memory, where more than one warp fits

// A warp for each row. `room`: a power of two, not below the places.
__global__ void __launch_bounds__(kThreads)
    merge_offers_kernel(DeviceListsRef lists, ListOffers offers, int room, unsigned long long* entered) {
  extern __shared__ __align__(16) uint64_t memory[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t place = static_cast<int64_t>(blockIdx.x) * warps + warp;
  if (place >= offers.rows) return;
  const int64_t row = offers.first + place;
  const int length = static_cast<int>(lists.length);
  uint64_t* const list = memory + warp * (lists.length + room);
  uint64_t* const fresh = list + length;
  const uint64_t end = lists.ends[row];
  int count = 0;
  for (int64_t first = 0; first < offers.places; first += 32) {
    const int64_t i = first + lane_index();
    const uint64_t offer = i < offers.places ? offers.offers[place * offers.places + i] : kPadding;
    const bool stays = offer != kPadding && without_flag(offer) < end;
    const unsigned lanes = __ballot_sync(kAllLanes, stays);
    if (stays) fresh[count + __popc(lanes & ((1u << lane_index()) - 1))] = offer;
    count += __popc(lanes);
  }
  if (count == 0) return;
  int used = 1;
  while (used < count) used *= 2;
  for (int i = count + lane_index(); i < used; i += 32) fresh[i] = kPadding;
  uint64_t* const stored = lists.entries + row * lists.length;
  for (int i = lane_index(); i < length; i += 32) list[i] = stored[i];
  sort_neighbors(fresh, used);
  count = leave_new(fresh, count, list, length);
  if (count == 0) return;
  const uint64_t nearest = without_flag(fresh[0]);
  merge_into(list, length, fresh, count);
  const uint64_t last = without_flag(list[length - 1]);
  // Nothing before the first that entered has moved.
  for (int i = lane_index(); i < length; i += 32) {
    if (without_flag(list[i]) >= nearest) stored[i] = list[i];
  }
  if (lane_index() == 0) lists.ends[row] = last;
  if (entered == nullptr) return;
  int stayed = 0;
  for (int i = lane_index(); i < count; i += 32) stayed += without_flag(fresh[i]) <= last ? 1 : 0;
  stayed = __reduce_add_sync(kAllLanes, stayed);
  if (lane_index() == 0 && stayed > 0) atomicAdd(entered + row % kCounters, static_cast<unsigned long long>(stayed));
}

__global__ void __launch_bounds__(kThreads) ends_kernel(DeviceListsRef lists) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row < lists.rows) lists.ends[row] = without_flag(lists.entries[(row + 1) * lists.length - 1]);
}

}  // namespace

int64_t read_count(const unsigned long long* counters, const DeviceContext& context) {
  unsigned long long values[kCounters];
  context.copy_values(values, counters, kCounters);
  context.synchronize();
  return static_cast<int64_t>(std::accumulate(values, values + kCounters, 0ull));
}

void launch_list_ends(const DeviceListsRef& lists, cudaStream_t stream) {
  launch(ends_kernel, Grid::over(lists.rows, kThreads), stream, lists);
}

void launch_merge_offers(const DeviceListsRef& lists, const ListOffers& offers, unsigned long long* entered,
                         cudaStream_t stream) {
  if (offers.rows * offers.places == 0) return;
  if (lists.length > kLongestDeviceList || offers.places > kMostOfferPlaces) {
    throw InvalidArgument("lists of " + std::to_string(lists.length) + " neighbours, " + std::to_string(offers.places) +
                          " offers to each; on a GPU they have up to " + std::to_string(kLongestDeviceList) + " and " +
                          std::to_string(kMostOfferPlaces));
  }
  int room = 1;
  while (room < offers.places) room *= 2;
  const int64_t warp_bytes = 8 * (lists.length + room);
  const int64_t warps = std::clamp<int64_t>(kBlockBytes / warp_bytes, 1, kWarps);
  allow_all_shared_memory(merge_offers_kernel);
  launch(merge_offers_kernel, Grid::of(divide_up(offers.rows, warps), 32 * warps).with_shared(warps * warp_bytes),
         stream, lists, offers, room, entered);
}

}  // namespace kith
