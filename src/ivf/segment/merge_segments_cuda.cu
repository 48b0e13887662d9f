// merge_on_device() of list_segment.hpp: every list is the lists of the segments, one after the other. A few passes over
// the offsets, one read and one write of all vectors.
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "ivf/segment/copy_codes_cuda.hpp"
#include "ivf/segment/list_segment.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) add_offsets_kernel(const int64_t* from, int64_t count, int64_t* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) to[i] += from[i];
}

// The list that holds a place, found by all lanes of a warp: 32 times fewer are left each time.
__device__ int64_t list_of_warp(const int64_t* offsets, int64_t lists, int64_t place) {
  const auto lane = static_cast<int64_t>(threadIdx.x % 32);
  int64_t low = 0;
  int64_t high = lists;  // it is before this one
  while (high - low > 1) {
    const int64_t step = (high - low + 31) / 32;
    const int64_t mine = low + lane * step;
    const unsigned begun = __ballot_sync(0xFFFFFFFFu, mine < high && offsets[mine] <= place);
    low += (__popc(begun) - 1) * step;
    high = low + step < high ? low + step : high;
  }
  return low;
}

// The same by one thread, where it is known to be one of these.
__device__ int64_t list_between(const int64_t* offsets, int64_t low, int64_t last, int64_t place) {
  int64_t high = last + 1;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (offsets[middle] <= place) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    append_lists_kernel(ListArrays from, int64_t lists, int64_t code_bytes, ListArrays to, const int64_t* next) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t warp_first = i - threadIdx.x % 32;
  if (warp_first >= from.count) return;
  const int real = from.count - warp_first < 32 ? static_cast<int>(from.count - warp_first) : 32;
  const int64_t first = list_of_warp(from.offsets, lists, warp_first);
  const int64_t last = list_of_warp(from.offsets, lists, warp_first + real - 1);
  int64_t target = 0;
  if (i < from.count) {
    const int64_t list = list_between(from.offsets, first, last, i);
    target = next[list] + i - from.offsets[list];
    to.rows[target] = from.rows[i];
  }
  copy_codes<Unit>(from.codes, to.codes, code_bytes, i, target, real);
}

__global__ void __launch_bounds__(kThreads) advance_kernel(const int64_t* offsets, int64_t lists, int64_t* next) {
  const int64_t list = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (list < lists) next[list] += offsets[list + 1] - offsets[list];
}

// Copies the vectors of a segment behind those that are there; `next`: where each list's next one goes.
void append_lists(const ListArrays& from, int64_t lists, int64_t code_bytes, const ListArrays& to, int64_t* next,
                  cudaStream_t stream) {
  if (from.count == 0) return;
  visit_code_unit(code_bytes, [&](auto unit) {
    launch(append_lists_kernel<decltype(unit)>, Grid::over(from.count, kThreads), stream, from, lists, code_bytes, to,
           next);
  });
  launch(advance_kernel, Grid::over(lists, kThreads), stream, from.offsets, lists, next);
}

}  // namespace

Segment merge_on_device(const std::vector<Segment>& segments, const Resources& resources) {
  if (segments.size() == 1) return segments.front();
  const int device = segments.front()->space().device;
  const int64_t lists = segments.front()->lists();
  const int64_t code_bytes = segments.front()->code_bytes();
  int64_t size = 0;
  for (const Segment& segment : segments) size += segment->size();
  const DeviceGuard guard(device);
  const auto context = std::make_shared<const DeviceContext>(device, resources.options().stream);
  const auto merged = std::make_shared<ListSegment>(device, lists, size, code_bytes, resources);
  const DeviceArray<int64_t> next(lists, "the merging of lists", context, resources);
  const ListArrays to = merged->to_fill();
  context->fill(to.offsets, 0, lists + 1);
  for (const Segment& segment : segments) {
    launch(add_offsets_kernel, Grid::over(lists + 1, kThreads), context->stream(), segment->offsets(), lists + 1,
           to.offsets);
  }
  context->copy_values(next.data(), to.offsets, lists);
  for (const Segment& segment : segments) {
    append_lists(segment->to_fill(), lists, code_bytes, to, next.data(), context->stream());
  }
  context->synchronize();
  return merged;
}

}  // namespace kith
