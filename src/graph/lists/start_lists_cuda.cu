// Rows to be offered to each list are written down, a batch of lists at a time, then their keys, then these are merged
// in. Bound by the reads of the rows that are named.
#include "graph/lists/graph_lists_cuda.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "cuda/device_array.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/lists/pairs/custom_sets_cuda.hpp"
#include "graph/lists/pairs/pair_key_cuda.hpp"
#include "graph/lists/start_rules.hpp"
#include "kernels/select/device_warp_cuda.hpp"

#include <algorithm>
#include <optional>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int64_t kBatchRows = int64_t{1} << 18;

// Whether two of a warp's numbers are equal, up to two for each lane.
__device__ bool any_twice(const uint32_t* numbers, int64_t count) {
  const auto lane = static_cast<uint32_t>(lane_index());
  const uint32_t first = lane < count ? numbers[lane] : kNobody - lane;  // rows are smaller
  const uint32_t second = lane + 32 < count ? numbers[lane + 32] : kNobody - 32 - lane;
  bool twice = first == second;
  for (uint32_t apart = 1; apart < 32; ++apart) {
    const auto other = static_cast<int>((lane + apart) % 32);
    const uint32_t a = __shfl_sync(kAllLanes, first, other);
    const uint32_t b = __shfl_sync(kAllLanes, second, other);
    twice = twice || a == first || b == second || b == first;
  }
  return __any_sync(kAllLanes, twice);
}

// A warp draws the rows of a list, as the CPU does one by one: all numbers at once, then those that were there
// before become the largest possible.
__global__ void __launch_bounds__(kThreads)
    draw_kernel(DeviceListsRef lists, CounterRng rng, int64_t boundary, int64_t first, int64_t count, uint32_t* named) {
  extern __shared__ uint32_t memory[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int64_t place = static_cast<int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
  if (place >= count) return;
  uint32_t* const drawn = memory + threadIdx.x / 32 * lists.length;
  const int64_t row = first + place;
  const bool before = row < boundary;
  const int64_t others = boundary == 0 ? lists.rows - 1 : before ? lists.rows - boundary : boundary;
  int64_t room = 0;
  for (int64_t start = 0; start < lists.length; start += 32) {
    const int64_t j = start + lane_index();
    const bool empty = j < lists.length && lists.entries[row * lists.length + j] == kPadding;
    room += __popc(__ballot_sync(kAllLanes, empty));
  }
  const int64_t draws = room < others ? room : others;
  const auto number = static_cast<uint32_t>(row);
  for (int64_t draw = lane_index(); draw < draws; draw += 32) {
    drawn[draw] = start_draw(rng, number, draw, static_cast<uint32_t>(others - draws + draw + 1));
  }
  __syncwarp();
  const bool distinct = draws <= 64 && !any_twice(drawn, draws);  // mostly
  for (int64_t draw = 1; draw < draws && !distinct; ++draw) {
    const uint32_t mine = drawn[draw];
    bool there = false;
    for (int64_t i = lane_index(); i < draw; i += 32) there = there || drawn[i] == mine;
    const bool repeated = __any_sync(kAllLanes, there);
    __syncwarp();  // all have read it
    if (repeated && lane_index() == 0) drawn[draw] = static_cast<uint32_t>(others - draws + draw);
    __syncwarp();
  }
  for (int64_t i = lane_index(); i < lists.length; i += 32) {
    uint32_t other = kNobody;
    if (i < draws) {
      other = boundary == 0 ? other_row(number, drawn[i])
              : before      ? drawn[i] + static_cast<uint32_t>(boundary)
                            : drawn[i];
    }
    named[place * lists.length + i] = other;
  }
}

__global__ void __launch_bounds__(kThreads)
    neighbors_kernel(const int64_t* ids, int64_t k, int64_t most, int64_t count, int64_t first, uint32_t* named) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count * most) return;
  const int64_t id = ids[i / most * k + i % most];
  named[i] = id < 0 ? kNobody : static_cast<uint32_t>(first + id);
}

// For a user's metric: the set of each list from `first` on, which is its own row and then the `places` rows named for
// it, padded with kNobody.
__global__ void __launch_bounds__(kThreads)
    named_sets_kernel(const uint32_t* named, int64_t places, int64_t first, int64_t count, CustomSetsRef sets) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count * (places + 1)) return;
  const int64_t set = i / (places + 1);
  const int64_t place = i % (places + 1);
  if (place == 0) {
    sets.numbers[i] = static_cast<uint32_t>(first + set);
    if (named[set * places] == kNobody) sets.counts[set] = {1, 1};
    return;
  }
  const uint32_t mine = named[set * places + place - 1];
  sets.numbers[i] = mine;
  const bool last = place == places || named[set * places + place] == kNobody;
  if (mine != kNobody && last) sets.counts[set] = {1, static_cast<int32_t>(place + 1)};
}

// The offers, in the places of the numbers; kPadding if there was none.
__global__ void __launch_bounds__(kThreads)
    named_offers_kernel(CustomSetsRef sets, int64_t places, int64_t count, uint64_t* offers) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count * places) return;
  const int64_t at = i / places * (places + 1) + i % places + 1;
  const bool there = i % places + 1 < sets.counts[i / places].rows;
  offers[i] = there ? pack_neighbor(ordered_key(sets.distances[at]), sets.numbers[at]) : kPadding;
}

// Four threads for each. `kProducts`: of the kinds of key that are products, within the kernel.
template <bool kProducts>
__global__ void __launch_bounds__(kThreads) key_kernel(const __grid_constant__ PairKeyRows rows, const uint32_t* named,
                                                       int64_t places, int64_t first, int64_t count, uint64_t* offers) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kRowThreads;
  const bool there = i < count * places;
  const uint32_t other = there ? named[i] : kNobody;
  const auto row = static_cast<uint32_t>(there ? first + i / places : first);
  const uint32_t compared = other == kNobody ? row : other;
  const float key = kProducts ? product_pair_key(rows, row, compared) : pair_key(rows, row, compared);
  if (!there || threadIdx.x % kRowThreads != 0) return;
  offers[i] = other == kNobody ? kPadding : pack_neighbor(ordered_key(key), other);
}

// Lists at a time.
int64_t batch_of(int64_t count, int64_t places, int64_t extra_bytes) {
  return std::clamp<int64_t>(kStartBytes / (12 * std::max<int64_t>(places, 1) + extra_bytes), 1,
                             std::clamp<int64_t>(count, 1, kBatchRows));
}

// Canonical keys, or where there is a metric of the user's its distances.
void launch_keys(const PairKeyRows& rows, const CustomSetsCuda* sets, const uint32_t* named, int64_t places,
                 int64_t first, int64_t count, uint64_t* offers, cudaStream_t stream) {
  if (sets != nullptr) {
    for (int64_t done = 0; done < count; done += sets->room()) {
      const int64_t some = std::min(sets->room(), count - done);
      launch(named_sets_kernel, Grid::over(some * (places + 1), kThreads), stream, named + done * places, places,
             first + done, some, sets->ref());
      sets->compute(some);
      launch(named_offers_kernel, Grid::over(some * places, kThreads), stream, sets->ref(), places, some,
             offers + done * places);
    }
    return;
  }
  const int64_t threads = count * places * kRowThreads;
  const auto kernel = is_product(rows.kind) ? key_kernel<true> : key_kernel<false>;
  launch(kernel, Grid::over(threads, kThreads), stream, rows, named, places, first, count, offers);
}

// name(first, count, named) writes down what is offered to lists first, first + 1, ...
template <typename Name>
void offer_named(const PairKeyRows& rows, const DeviceListsRef& lists, int64_t first, int64_t count, int64_t places,
                 int64_t batch, const std::shared_ptr<const DeviceContext>& context, const Resources& resources,
                 const Name& name) {
  if (count * places == 0) return;
  std::optional<CustomSetsCuda> sets;
  if (rows.custom != nullptr) sets.emplace(*rows.custom, rows, batch, 1, places + 1, context, resources);
  const DeviceArray<uint32_t> named(batch * places, "rows to begin with", context, resources);
  const DeviceArray<uint64_t> offers(batch * places, "rows to begin with", context, resources);
  ProgressMeter meter("start", count, resources);
  for (int64_t done = 0; done < count; done += batch) {
    const int64_t some = std::min(batch, count - done);
    name(first + done, some, named.data());
    launch_keys(rows, sets ? &*sets : nullptr, named.data(), places, first + done, some, offers.data(),
                context->stream());
    launch_merge_offers(lists, {offers.data(), places, first + done, some}, nullptr, context->stream());
    context->synchronize();
    meter.add(some);
    meter.poll();
  }
}

}  // namespace

void add_random_rows_cuda(const PairKeyRows& rows, int64_t boundary, uint64_t seed, const DeviceListsRef& lists,
                          const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  const CounterRng rng(seed, kStartStream);
  const int64_t warps = std::clamp<int64_t>((48 << 10) / (4 * lists.length), 1, kWarps);
  allow_all_shared_memory(draw_kernel);
  offer_named(rows, lists, 0, lists.rows, lists.length, batch_of(lists.rows, lists.length, 0), context, resources,
              [&](int64_t first, int64_t count, uint32_t* named) {
                launch(draw_kernel, Grid::of(divide_up(count, warps), 32 * warps).with_shared(warps * 4 * lists.length),
                       context->stream(), lists, rng, boundary, first, count, named);
              });
}

void add_named_rows_cuda(const PairKeyRows& rows, const NamedRows& named, const DeviceListsRef& lists,
                         const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  const bool there = !named.space.host_readable();
  const int64_t copied = there ? 0 : named.k;  // ids of a list
  const int64_t batch = batch_of(named.count, named.most, array_bytes<int64_t>(copied));
  const DeviceArray<int64_t> ids(batch * copied, "rows to begin with", context, resources);
  offer_named(rows, lists, named.first, named.count, named.most, batch, context, resources,
              [&](int64_t row, int64_t count, uint32_t* numbers) {
                const int64_t* from = named.ids + (row - named.first) * named.k;
                if (!there) {
                  context->copy_values(ids.data(), from, count * copied);
                  from = ids.data();
                }
                launch(neighbors_kernel, Grid::over(count * named.most, kThreads), context->stream(), from, named.k,
                       named.most, count, named.first_id, numbers);
              });
}

}  // namespace kith
