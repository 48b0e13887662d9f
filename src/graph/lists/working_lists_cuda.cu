#include "graph/lists/working_lists_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/result_exit.hpp"
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

__device__ uint64_t changed(uint64_t neighbor, Flags flags) {
  if (flags == Flags::set) return neighbor | kOldFlag;
  return flags == Flags::clear ? without_flag(neighbor) : neighbor;
}

// A thread for each row; the block's rows are added by a fixed tree.
__global__ void __launch_bounds__(kSurveyRows)
    survey_kernel(DeviceWorkingLists lists, int64_t k, ResultExit exit, Flags flags, ListSurvey* parts) {
  __shared__ double phi[kSurveyRows];
  __shared__ int updates[kSurveyRows];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kSurveyRows + threadIdx.x;
  double sum = 0;
  int count = 0;
  if (row < lists.rows) {
    uint64_t* const list = lists.entries + row * lists.length;
    for (int64_t j = 0; j < lists.length; ++j) {
      const uint64_t neighbor = list[j];
      if (neighbor == kPadding) break;
      if (j < k) sum += exit.distance(neighbor);
      count += is_old(neighbor) ? 0 : 1;
      const uint64_t next = changed(neighbor, flags);
      if (next != neighbor) list[j] = next;
    }
  }
  phi[threadIdx.x] = sum;
  updates[threadIdx.x] = count;
  for (int apart = kSurveyRows / 2; apart > 0; apart /= 2) {
    __syncthreads();
    if (threadIdx.x < apart) {
      phi[threadIdx.x] += phi[threadIdx.x + apart];
      updates[threadIdx.x] += updates[threadIdx.x + apart];
    }
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = {phi[0], updates[0]};
}

__global__ void __launch_bounds__(kThreads)
    gather_kernel(DeviceWorkingLists lists, const uint32_t* rows, int64_t count, uint64_t* out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= count * lists.length) return;
  out[at] = lists.entries[static_cast<int64_t>(rows[at / lists.length]) * lists.length + at % lists.length];
}

__global__ void __launch_bounds__(kThreads) resize_kernel(DeviceWorkingLists lists, DeviceWorkingLists to) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= to.rows * to.length) return;
  const int64_t j = at % to.length;
  to.entries[at] = j < lists.length ? lists.entries[at / to.length * lists.length + j] : kPadding;
}

__global__ void __launch_bounds__(kThreads)
    write_kernel(DeviceWorkingLists lists, ResultExit exit, int64_t first, NeighborsView out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= out.queries * out.k) return;
  const int64_t j = at % out.k;
  const uint64_t stored = j < lists.length ? lists.entries[(first + at / out.k) * lists.length + j] : kPadding;
  const uint64_t neighbor = stored == kPadding ? kPadding : without_flag(stored);
  out.ids[at] = exit.id(neighbor);
  out.distances[at] = exit.distance(neighbor);
}

}  // namespace

int64_t read_count(const unsigned long long* counters, const DeviceContext& context) {
  unsigned long long values[kCounters] = {};
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

void launch_survey_lists(const DeviceWorkingLists& lists, int64_t k, Metric metric, Flags flags, ListSurvey* parts,
                         cudaStream_t stream) {
  launch(survey_kernel, Grid::of(survey_parts(lists.rows), kSurveyRows), stream, lists, k, ResultExit(metric), flags,
         parts);
}

void launch_gather_lists(const DeviceWorkingLists& lists, const uint32_t* rows, int64_t count, uint64_t* out,
                         cudaStream_t stream) {
  launch(gather_kernel, Grid::over(count * lists.length, kThreads), stream, lists, rows, count, out);
}

void launch_resize_lists(const DeviceWorkingLists& lists, const DeviceWorkingLists& to, cudaStream_t stream) {
  launch(resize_kernel, Grid::over(to.rows * to.length, kThreads), stream, lists, to);
}

void launch_write_lists(const DeviceWorkingLists& lists, Metric metric, int64_t first, const NeighborsView& out,
                        cudaStream_t stream) {
  launch(write_kernel, Grid::over(out.queries * out.k, kThreads), stream, lists, ResultExit(metric), first, out);
}

}  // namespace kith
