// The CUDA devices of this machine.
#include <kith/device.hpp>

#include <cuda_runtime_api.h>

namespace kith {
namespace {

// Exists to be asked for: a device that has no code for it cannot run any kernel of this build.
__global__ void probe() {}

// False, with no error left behind, for a device that cannot be used: busy in exclusive mode, fallen off the bus, or of
// a generation this build has no code for.
bool describe(int index, DeviceInfo& info) {
  cudaDeviceProp properties;
  cudaFuncAttributes attributes;
  size_t free = 0;
  size_t total = 0;
  const bool usable =
      cudaSetDevice(index) == cudaSuccess && cudaGetDeviceProperties(&properties, index) == cudaSuccess &&
      cudaMemGetInfo(&free, &total) == cudaSuccess && cudaFuncGetAttributes(&attributes, probe) == cudaSuccess;
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

}  // namespace kith
