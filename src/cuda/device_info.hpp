// Describes one CUDA device, without initialising the others.
#pragma once

#include <kith/device.hpp>
#include <kith/resources.hpp>

#include <cstdint>

namespace kith {

// The device of this number; one that is not usable is described as `Device::cpu()`.
DeviceInfo cuda_device(int index);

// The same as if all of its memory were free: the driver is not asked for free memory, and everything else is cached
// after the first call.
DeviceInfo cuda_device_when_idle(int index);

// For a device that the user asked for: throws Unsupported without CUDA, InvalidArgument if there is no such device.
DeviceInfo usable_gpu(Device device);
DeviceInfo usable_gpu_when_idle(Device device);

// Device memory that can be allocated now: within the limit, and free for Kith according to the driver.
int64_t device_memory_left(int device, const Resources& resources);

// Unused bytes in Kith's pool on the device: free for Kith, though not for others.
int64_t idle_pool_bytes(int device);

}  // namespace kith
