#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "cuda/device_info.hpp"

#include <fmt/format.h>

namespace kith {

namespace {

DeviceInfo checked(Device asked, DeviceInfo (*describe)(int index)) {
  if (!built_with_cuda()) throw_no_cuda();
  DeviceInfo gpu = describe(asked.index);
  if (gpu.device == asked) return gpu;
  throw InvalidArgument(fmt::format("device {} was asked for; this machine has {} usable CUDA device(s)",
                                    name_of(asked), cuda_devices().size()));
}

}  // namespace

DeviceInfo usable_gpu(Device device) { return checked(device, cuda_device); }
DeviceInfo usable_gpu_when_idle(Device device) { return checked(device, cuda_device_when_idle); }

}  // namespace kith
