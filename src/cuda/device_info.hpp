// One CUDA device, without looking at the others.
#pragma once

#include <kith/device.hpp>

namespace kith {

// The device of this number; one that is not usable is described as `Device::cpu()`.
DeviceInfo cuda_device(int index);

// The same for a device that was asked for: Unsupported in a build without CUDA, InvalidArgument where there is none.
DeviceInfo usable_gpu(Device device);

}  // namespace kith
