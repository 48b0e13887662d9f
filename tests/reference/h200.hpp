// A GPU to plan for where there is none.
#pragma once

#include <kith/device.hpp>

#include <cstdint>

namespace kith::reference {

inline DeviceInfo h200() {
  constexpr int64_t kGiB = int64_t{1} << 30;
  DeviceInfo info;
  info.device = Device::cuda(0);
  info.name = "NVIDIA H200";
  info.memory_total = 139 * kGiB;
  info.memory_free = 138 * kGiB;
  info.multiprocessors = 132;
  info.compute_capability = 90;
  return info;
}

}  // namespace kith::reference
