#include "graph/working_lists_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/result_exit.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "cuda/shared_memory.hpp"
#include "kernels/select/device_warp_cuda.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int64_t kBlockBytes = int64_t{64} << 10;     // of shared memory, where more than one warp fits
constexpr int64_t kOutputBytes = int64_t{256} << 20;  // of results on their way to the host

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>(divide_up(threads, kThreads)); }

__global__ void __launch_bounds__(kThreads) fill_kernel(uint64_t* values, int64_t count, uint64_t value) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) values[i] = value;
}

// Those before `bare` in a sorted list of neighbours with flags.
__device__ int rank_of(const uint64_t* list, int length, uint64_t bare) {
  int low = 0;
  int high = length;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (without_flag(list[middle]) < bare) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A warp sorts entries in its memory by what they are without flags; `room` is a power of two, past `count` is padding.
__device__ void sort_offers(uint64_t* entries, int room) {
  for (int size = 2; size <= room; size *= 2) {
    for (int apart = size / 2; apart > 0; apart /= 2) {
      __syncwarp();
      for (int i = lane_index(); i < room / 2; i += 32) {
        const int low = i / apart * 2 * apart + i % apart;
        const int high = low + apart;
        const bool rises = (low & size) == 0;
        const uint64_t a = entries[low];
        const uint64_t b = entries[high];
        if ((without_flag(a) > without_flag(b)) == rises) {
          entries[low] = b;
          entries[high] = a;
        }
      }
    }
  }
  __syncwarp();
}

// Leaves the entries for which keep(entry, i) holds, in their order; returns how many. All lanes call it.
template <typename Keep>
__device__ int compact(uint64_t* entries, int count, const Keep& keep) {
  int kept = 0;
  for (int first = 0; first < count; first += 32) {
    const int i = first + lane_index();
    const uint64_t entry = i < count ? entries[i] : kPadding;
    const bool stays = i < count && keep(entry, i);
    const unsigned lanes = __ballot_sync(kAllLanes, stays);
    if (stays) entries[kept + __popc(lanes & ((1u << lane_index()) - 1))] = entry;
    kept += __popc(lanes);
    __syncwarp();
  }
  return kept;
}

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
  uint64_t* const stored = lists.lists + row * lists.length;
  for (int i = lane_index(); i < length; i += 32) list[i] = stored[i];
  sort_offers(fresh, used);
  // Nobody twice. An entry before the one that is looked at may have been moved over only by itself.
  count = compact(fresh, count, [&](uint64_t entry, int i) {
    const uint64_t bare = without_flag(entry);
    if (i > 0 && without_flag(fresh[i - 1]) == bare) return false;
    const int rank = rank_of(list, length, bare);
    return rank == length || without_flag(list[rank]) != bare;
  });
  int stayed = 0;
  for (int i = lane_index(); i < count; i += 32) {
    const int to = i + rank_of(list, length, without_flag(fresh[i]));
    if (to >= length) continue;
    stored[to] = fresh[i];
    if (to == length - 1) lists.ends[row] = without_flag(fresh[i]);
    ++stayed;
  }
  for (int i = lane_index(); i < length; i += 32) {
    if (list[i] == kPadding) break;
    const int to = i + rank_of(fresh, count, without_flag(list[i]));
    if (to == i || to >= length) continue;
    stored[to] = list[i];
    if (to == length - 1) lists.ends[row] = without_flag(list[i]);
  }
  if (entered == nullptr) return;
  stayed = __reduce_add_sync(kAllLanes, stayed);
  if (lane_index() == 0 && stayed > 0) atomicAdd(entered + row % kCounters, static_cast<unsigned long long>(stayed));
}

__global__ void __launch_bounds__(kThreads) take_kernel(DeviceListsRef from, DeviceListsRef to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= to.rows * to.length) return;
  const int64_t row = i / to.length;
  const int64_t j = i % to.length;
  const uint64_t entry = j < from.length ? from.lists[row * from.length + j] : kPadding;
  to.lists[i] = entry;
  if (j == to.length - 1) to.ends[row] = without_flag(entry);
}

__global__ void __launch_bounds__(kThreads) ends_kernel(DeviceListsRef lists) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row < lists.rows) lists.ends[row] = without_flag(lists.lists[(row + 1) * lists.length - 1]);
}

// A block for each kSurveyRows rows, whose sums are added in the order of rows.
__global__ void __launch_bounds__(kThreads)
    survey_kernel(DeviceListsRef lists, int64_t k, ResultExit exit, Flags flags, ListSurvey* parts) {
  __shared__ double sums[kSurveyRows];
  __shared__ unsigned long long updates;
  if (threadIdx.x == 0) updates = 0;
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kSurveyRows;
  const int count = static_cast<int>(lists.rows - first < kSurveyRows ? lists.rows - first : kSurveyRows);
  unsigned long long mine = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    uint64_t* const list = lists.lists + (first + i) * lists.length;
    double sum = 0;
    for (int64_t j = 0; j < lists.length; ++j) {
      const uint64_t entry = list[j];
      if (entry == kPadding) break;
      if (j < k) sum += static_cast<double>(exit.distance(entry));
      mine += is_old(entry) ? 0 : 1;
      if (flags == Flags::set && !is_old(entry)) list[j] = entry | kOldFlag;
      if (flags == Flags::clear && is_old(entry)) list[j] = without_flag(entry);
    }
    sums[i] = sum;
  }
  atomicAdd(&updates, mine);
  __syncthreads();
  if (threadIdx.x != 0) return;
  double phi = 0;
  for (int i = 0; i < count; ++i) phi += sums[i];
  parts[blockIdx.x] = {phi, static_cast<int64_t>(updates)};
}

__global__ void __launch_bounds__(kThreads)
    first_of_kernel(DeviceListsRef lists, const uint32_t* rows, int64_t row_count, int64_t count, uint64_t* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < row_count * count) out[i] = lists.lists[rows[i / count] * lists.length + i % count];
}

__global__ void __launch_bounds__(kThreads)
    write_kernel(DeviceListsRef lists, int64_t first, int64_t rows, ResultExit exit, int64_t k, int64_t* ids,
                 float* distances) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows * k) return;
  const int64_t j = i % k;
  const uint64_t stored = j < lists.length ? lists.lists[(first + i / k) * lists.length + j] : kPadding;
  const uint64_t neighbor = stored == kPadding ? kPadding : without_flag(stored);
  ids[i] = exit.id(neighbor);
  distances[i] = exit.distance(neighbor);
}

}  // namespace

DeviceWorkingLists::DeviceWorkingLists(int64_t rows, int64_t length, std::shared_ptr<const DeviceContext> context,
                                       const Resources& resources)
    : rows_(rows), length_(length), context_(std::move(context)) {
  if (length > kLongestDeviceList) {
    throw Unsupported("lists of " + std::to_string(length) + " neighbours; on a GPU they have up to " +
                      std::to_string(kLongestDeviceList) + ": use device cpu, or the method exact");
  }
  lists_ = DeviceBuffer(rows * length * 8, "the lists of neighbours", context_, resources);
  ends_ = DeviceBuffer(rows * 8, "the lists of neighbours", context_, resources);
  if (rows * length == 0) return;
  KITH_CUDA_CHECK(cudaMemsetAsync(lists_.data(), 0xFF, static_cast<size_t>(rows * length * 8), stream()));
  fill_kernel<<<blocks_for(rows), kThreads, 0, stream()>>>(ref().ends, rows, kNoEnd);
  KITH_CUDA_CHECK_LAUNCH("fill_kernel");
}

DeviceListsRef DeviceWorkingLists::ref() const {
  return {reinterpret_cast<uint64_t*>(lists_.data()), reinterpret_cast<uint64_t*>(ends_.data()), rows_, length_};
}

void DeviceWorkingLists::merge(const ListOffers& offers, unsigned long long* entered) const {
  if (offers.rows * offers.places == 0) return;
  if (offers.places > kMostOfferPlaces) throw InvalidArgument("more offers at a time than a warp can sort");
  int room = 1;
  while (room < offers.places) room *= 2;
  const int64_t warp_bytes = 8 * (length_ + room);
  const auto warps = static_cast<int>(std::clamp<int64_t>(kBlockBytes / warp_bytes, 1, kWarps));
  allow_all_shared_memory(reinterpret_cast<const void*>(&merge_offers_kernel));
  merge_offers_kernel<<<static_cast<unsigned>(divide_up(offers.rows, int64_t{warps})), static_cast<unsigned>(32 * warps),
                        static_cast<size_t>(warps * warp_bytes), stream()>>>(ref(), offers, room, entered);
  KITH_CUDA_CHECK_LAUNCH("merge_offers_kernel");
}

void DeviceWorkingLists::take(const DeviceWorkingLists& other) const {
  if (rows_ * length_ == 0) return;
  take_kernel<<<blocks_for(rows_ * length_), kThreads, 0, stream()>>>(other.ref(), ref());
  KITH_CUDA_CHECK_LAUNCH("take_kernel");
}

void DeviceWorkingLists::load(const WorkingLists& from) const {
  if (rows_ * length_ == 0) return;
  context_->copy(lists_.data(), from.list(0), rows_ * length_ * 8);
  ends_kernel<<<blocks_for(rows_), kThreads, 0, stream()>>>(ref());
  KITH_CUDA_CHECK_LAUNCH("ends_kernel");
  context_->synchronize();
}

void DeviceWorkingLists::store(WorkingLists& to) const {
  if (rows_ * length_ == 0) return;
  context_->copy(to.list(0), lists_.data(), rows_ * length_ * 8);
  context_->synchronize();
  for (int64_t row = 0; row < rows_; ++row) to.refresh_threshold(row);
}

ListSurvey DeviceWorkingLists::survey(int64_t k, Metric metric, Flags flags, const Resources& resources) const {
  const int64_t tasks = divide_up(rows_, kSurveyRows);
  if (tasks == 0) return {};
  const DeviceBuffer parts(tasks * static_cast<int64_t>(sizeof(ListSurvey)), "a survey of the lists", context_, resources);
  survey_kernel<<<static_cast<unsigned>(tasks), kThreads, 0, stream()>>>(ref(), k, ResultExit(metric), flags,
                                                                         reinterpret_cast<ListSurvey*>(parts.data()));
  KITH_CUDA_CHECK_LAUNCH("survey_kernel");
  std::vector<ListSurvey> there(static_cast<size_t>(tasks));
  context_->copy(there.data(), parts.data(), parts.bytes());
  context_->synchronize();
  ListSurvey all;
  for (const ListSurvey& part : there) {
    all.phi += part.phi;
    all.updates += part.updates;
  }
  return all;
}

std::vector<uint64_t> DeviceWorkingLists::first_of(const std::vector<uint32_t>& rows, int64_t count,
                                                   const Resources& resources) const {
  const auto row_count = static_cast<int64_t>(rows.size());
  std::vector<uint64_t> found(static_cast<size_t>(row_count * count));
  if (found.empty()) return found;
  const DeviceBuffer numbers(row_count * 4, "the control rows", context_, resources);
  const DeviceBuffer out(row_count * count * 8, "the control rows", context_, resources);
  context_->copy(numbers.data(), rows.data(), numbers.bytes());
  first_of_kernel<<<blocks_for(row_count * count), kThreads, 0, stream()>>>(
      ref(), reinterpret_cast<const uint32_t*>(numbers.data()), row_count, count,
      reinterpret_cast<uint64_t*>(out.data()));
  KITH_CUDA_CHECK_LAUNCH("first_of_kernel");
  context_->copy(found.data(), out.data(), out.bytes());
  context_->synchronize();
  return found;
}

void DeviceWorkingLists::write(Metric metric, const NeighborsView& out, const Resources& resources) const {
  if (rows_ * out.k == 0) return;
  const bool there = !out.space.host_readable();
  const int64_t batch = there ? rows_ : std::clamp<int64_t>(kOutputBytes / (12 * out.k), 1, rows_);
  const DeviceBuffer ids(there ? 0 : batch * out.k * 8, "neighbours on their way to the host", context_, resources);
  const DeviceBuffer distances(there ? 0 : batch * out.k * 4, "neighbours on their way to the host", context_, resources);
  for (int64_t first = 0; first < rows_; first += batch) {
    const int64_t count = std::min(batch, rows_ - first);
    int64_t* const to_ids = there ? out.ids : reinterpret_cast<int64_t*>(ids.data());
    float* const to_distances = there ? out.distances : reinterpret_cast<float*>(distances.data());
    write_kernel<<<blocks_for(count * out.k), kThreads, 0, stream()>>>(ref(), first, count, ResultExit(metric), out.k,
                                                                       to_ids, to_distances);
    KITH_CUDA_CHECK_LAUNCH("write_kernel");
    if (there) continue;
    context_->copy(out.ids + first * out.k, ids.data(), count * out.k * 8);
    context_->copy(out.distances + first * out.k, distances.data(), count * out.k * 4);
  }
  if (!there) context_->synchronize();
}

int64_t read_count(const unsigned long long* counters, const DeviceContext& context) {
  unsigned long long values[kCounters];
  context.copy(values, counters, sizeof values);
  context.synchronize();
  return static_cast<int64_t>(std::accumulate(values, values + kCounters, 0ull));
}

}  // namespace kith
