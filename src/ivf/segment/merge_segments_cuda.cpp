// merge_on_device() of device_segment.hpp.
#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "ivf/segment/device_segment.hpp"
#include "ivf/segment/merge_lists_cuda.hpp"
#include "ivf/segment/segment_arrays_cuda.hpp"

namespace kith {

SegmentThere merge_on_device(const std::vector<SegmentThere>& segments, const Resources& resources) {
  if (segments.size() == 1) return segments.front();
  const int device = segments.front()->device();
  const int64_t lists = segments.front()->lists();
  const int64_t code_bytes = segments.front()->code_bytes();
  int64_t size = 0;
  for (const SegmentThere& segment : segments) size += segment->size();
  const DeviceGuard guard(device);
  const auto context = std::make_shared<const DeviceContext>(device, resources.options().stream);
  const auto merged = std::make_shared<DeviceSegment>(device, lists, size, code_bytes, resources);
  const DeviceBuffer next(array_bytes<int64_t>(lists), "the merging of lists", context, resources);
  auto* const places = reinterpret_cast<int64_t*>(next.data());
  const cudaStream_t stream = context->stream();
  const ListArrays to = arrays_of(*merged);
  KITH_CUDA_CHECK(
      cudaMemsetAsync(to.offsets, 0, static_cast<size_t>(array_bytes<int64_t>(lists + 1)), stream));
  for (const SegmentThere& segment : segments) launch_add_offsets(arrays_of(*segment), lists, to, stream);
  launch_begin_lists(to, lists, places, stream);
  for (const SegmentThere& segment : segments) {
    launch_append_lists(arrays_of(*segment), lists, code_bytes, to, places, stream);
  }
  context->synchronize();
  return merged;
}

}  // namespace kith
