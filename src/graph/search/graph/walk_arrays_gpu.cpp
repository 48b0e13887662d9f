#include "graph/search/graph/walk_arrays_gpu.hpp"

#include "core/within_limits.hpp"
#include "cuda/device_memory.hpp"

namespace kith {

GpuBytes::GpuBytes(int64_t bytes, int device, const Resources& resources) : bytes_(bytes) {
  if (bytes > 0) memory_ = allocate_on_device(bytes, "the graph on the device", device, resources);
}

GpuBytes::GpuBytes(const void* data, int64_t bytes, int device, const Resources& resources)
    : GpuBytes(bytes, device, resources) {
  if (bytes == 0 || counts_only(resources)) return;
  copy_to_device({data, DType::u8, {1, bytes, bytes}}, memory_.get(), device, resources.with_progress({}));
}

}  // namespace kith
