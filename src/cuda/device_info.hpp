// One CUDA device, without looking at the others.
#pragma once

#include <kith/device.hpp>
#include <kith/resources.hpp>

#include <cstdint>

namespace kith {

// The device of this number; one that is not usable is described as `Device::cpu()`.
DeviceInfo cuda_device(int index);

// The same as if all of its memory were free: the driver need not be asked how much is, and the rest is known from the
// first time on.
DeviceInfo cuda_device_when_idle(int index);

// For a device that was asked for: Unsupported in a build without CUDA, InvalidArgument where there is none.
DeviceInfo usable_gpu(Device device);
DeviceInfo usable_gpu_when_idle(Device device);

// What may be taken there now: within the limit, and free for Kith, which the driver is asked.
int64_t device_memory_left(int device, const Resources& resources);

// What Kith's pool on the device holds for the next call: free for Kith, though not for others.
int64_t idle_pool_bytes(int device);

}  // namespace kith
