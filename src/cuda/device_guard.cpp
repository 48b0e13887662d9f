#include "cuda/device_guard.hpp"

#include <kith/error.hpp>

#include "cuda/error.hpp"

#include <string>

namespace kith {

DeviceGuard::DeviceGuard(int device) {
  int count = 0;
  KITH_CUDA_CHECK(cudaGetDeviceCount(&count));
  if (device < 0 || device >= count) {
    throw InvalidArgument("there is no device cuda:" + std::to_string(device) + "; this machine has " +
                          std::to_string(count) + ", counted from 0");
  }
  int current = 0;
  KITH_CUDA_CHECK(cudaGetDevice(&current));
  if (current == device) return;
  KITH_CUDA_CHECK(cudaSetDevice(device));
  previous_ = current;
}

DeviceGuard::~DeviceGuard() {
  if (previous_ >= 0) (void)cudaSetDevice(previous_);
}

}  // namespace kith
