// The CUDA devices of this machine.
#include <kith/device.hpp>

#include "cuda/device_info.hpp"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

namespace kith {
namespace {

// A kernel to look up: a device without code for it cannot run any kernel of this build.
__global__ void probe() {}

// Properties of devices, which do not change while a process lives and take the driver milliseconds, so they are
// cached. All memory counts as free.
struct KnownDevices {
  std::mutex mutex;
  std::map<int, DeviceInfo> devices;
};

KnownDevices& known_devices() {
  static KnownDevices* const known = new KnownDevices;
  return *known;
}

bool find_known(int index, DeviceInfo& info) {
  const std::lock_guard lock(known_devices().mutex);
  const auto known = known_devices().devices.find(index);
  if (known == known_devices().devices.end()) return false;
  info = known->second;
  return true;
}

// Makes the device the current one. False, without a pending CUDA error, if it cannot be used: busy in exclusive mode,
// fallen off the bus, or of a generation for which this build has no code.
bool describe_when_idle(int index, DeviceInfo& info) {
  const auto usable = [](cudaError_t error) {
    if (error != cudaSuccess) (void)cudaGetLastError();
    return error == cudaSuccess;
  };
  if (!usable(cudaSetDevice(index))) return false;
  if (find_known(index, info)) return true;
  cudaDeviceProp properties;
  cudaFuncAttributes attributes;
  if (!usable(cudaGetDeviceProperties(&properties, index)) || !usable(cudaFuncGetAttributes(&attributes, probe))) {
    return false;
  }
  info.device = Device::cuda(index);
  info.name = properties.name;
  info.memory_total = info.memory_free = static_cast<int64_t>(properties.totalGlobalMem);
  info.multiprocessors = properties.multiProcessorCount;
  info.compute_capability = properties.major * 10 + properties.minor;
  const std::lock_guard lock(known_devices().mutex);
  known_devices().devices[index] = info;
  return true;
}

// The same with the memory that is now free for Kith.
bool describe(int index, DeviceInfo& info) {
  if (!describe_when_idle(index, info)) return false;
  size_t free = 0;
  size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  info.memory_free = static_cast<int64_t>(free) + idle_pool_bytes(index);
  return true;
}

// Restores the current device.
DeviceInfo describe_one(int index, bool (*describe_current)(int index, DeviceInfo& info)) {
  int count = 0;
  int current = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || index < 0 || index >= count ||
      cudaGetDevice(&current) != cudaSuccess) {
    (void)cudaGetLastError();
    return {};
  }
  DeviceInfo info;
  const bool usable = describe_current(index, info);
  if (current != index) (void)cudaSetDevice(current);
  return usable ? info : DeviceInfo();
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

DeviceInfo cuda_device(int index) { return describe_one(index, describe); }
DeviceInfo cuda_device_when_idle(int index) { return describe_one(index, describe_when_idle); }

}  // namespace kith
