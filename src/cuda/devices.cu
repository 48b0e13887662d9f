// The CUDA devices of this machine.
#include <kith/device.hpp>

#include "cuda/device_context.hpp"
#include "cuda/device_info.hpp"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

namespace kith {
namespace {

// Exists to be asked for: a device that has no code for it cannot run any kernel of this build.
__global__ void probe() {}

// What does not change while a process lives, so that it is asked for once: that takes the driver milliseconds.
struct KnownDevices {
  std::mutex mutex;
  std::map<int, DeviceInfo> devices;
};

KnownDevices& known_devices() {
  static KnownDevices* const known = new KnownDevices;
  return *known;
}

// The memory that is free for Kith on the current device, number `index`; false, with no error left behind, where it
// cannot be used.
bool free_memory(int index, int64_t& bytes) {
  size_t free = 0;
  size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  bytes = static_cast<int64_t>(free) + idle_pool_bytes(index);
  return true;
}

// False, with no error left behind, for a device that cannot be used: busy in exclusive mode, fallen off the bus, or of
// a generation this build has no code for.
bool describe(int index, DeviceInfo& info) {
  if (cudaSetDevice(index) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  const std::lock_guard lock(known_devices().mutex);
  const auto known = known_devices().devices.find(index);
  if (known != known_devices().devices.end()) {
    info = known->second;
    return free_memory(index, info.memory_free);
  }
  cudaDeviceProp properties;
  cudaFuncAttributes attributes;
  size_t free = 0;
  size_t total = 0;
  const bool usable = cudaGetDeviceProperties(&properties, index) == cudaSuccess &&
                      cudaMemGetInfo(&free, &total) == cudaSuccess &&
                      cudaFuncGetAttributes(&attributes, probe) == cudaSuccess;
  if (!usable) {
    (void)cudaGetLastError();
    return false;
  }
  info.device = Device::cuda(index);
  info.name = properties.name;
  info.memory_total = static_cast<int64_t>(total);
  info.memory_free = static_cast<int64_t>(free);
  info.multiprocessors = properties.multiProcessorCount;
  info.compute_capability = properties.major * 10 + properties.minor;
  known_devices().devices[index] = info;
  return true;
}

}  // namespace

bool built_with_cuda() { return true; }

std::vector<DeviceInfo> cuda_devices() {
  int count = 0;
  int current = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || cudaGetDevice(&current) != cudaSuccess) {
    (void)cudaGetLastError();
    return {};
  }
  std::vector<DeviceInfo> devices;
  for (int index = 0; index < count; ++index) {
    DeviceInfo info;
    if (describe(index, info)) devices.push_back(info);
  }
  if (count > 1) (void)cudaSetDevice(current);
  return devices;
}

DeviceInfo cuda_device(int index) {
  int count = 0;
  int current = 0;
  DeviceInfo info;
  if (cudaGetDeviceCount(&count) != cudaSuccess || index < 0 || index >= count ||
      cudaGetDevice(&current) != cudaSuccess) {
    (void)cudaGetLastError();
    return info;
  }
  const bool usable = describe(index, info);
  if (current != index) (void)cudaSetDevice(current);
  return usable ? info : DeviceInfo();
}

}  // namespace kith
