#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "cuda/device_info.hpp"

#include <fmt/format.h>

namespace kith {

DeviceInfo usable_gpu(Device device) {
  if (!built_with_cuda()) throw_no_cuda();
  DeviceInfo gpu = cuda_device(device.index);
  if (gpu.device == device) return gpu;
  throw InvalidArgument(fmt::format("device {} was asked for; this machine has {} usable CUDA device(s)",
                                    name_of(device), cuda_devices().size()));
}

}  // namespace kith
