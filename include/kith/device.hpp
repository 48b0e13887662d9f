// Which processor works, and what is known of it.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

enum class DeviceKind : uint8_t { automatic, cpu, cuda };

struct Device {
  DeviceKind kind = DeviceKind::automatic;
  int index = 0;  // which CUDA device

  static constexpr Device automatic() { return {}; }
  static constexpr Device cpu() { return {DeviceKind::cpu, 0}; }
  static constexpr Device cuda(int index) { return {DeviceKind::cuda, index}; }
  constexpr bool operator==(const Device&) const = default;
};

// "auto", "cpu", "cuda" (the first one) or "cuda:N"; anything else is InvalidArgument.
KITH_EXPORT Device parse_device(std::string_view name);
KITH_EXPORT std::string name_of(Device device);

// A device that shares calls with others, whole or as several parts: each part works like a device of its own, with
// threads, streams and a share of the memory limit. Parts of a CPU are for machines whose memory is divided (NUMA).
struct DeviceParts {
  Device device;
  int parts = 1;

  constexpr bool operator==(const DeviceParts&) const = default;
};

// One device, or several divided by commas: "cuda:0,cuda:1", "cuda:all" (every one that can be used), "cpu/4" and
// "cuda:0/3" (so many parts of one). InvalidArgument for other words, and for a device that is named twice.
KITH_EXPORT std::vector<DeviceParts> parse_devices(std::string_view names);
KITH_EXPORT std::string name_of(const std::vector<DeviceParts>& devices);

// Plain data, so that a plan for any device can be made, and tested, on any other.
struct DeviceInfo {
  Device device = Device::cpu();
  std::string name;
  int64_t memory_total = 0;  // bytes
  int64_t memory_free = 0;
  int threads = 1;              // CPU: hardware threads
  std::string instruction_set;  // CPU: what the kernels were dispatched to
  int multiprocessors = 0;      // CUDA
  int compute_capability = 0;   // CUDA: 90 for 9.0
};

KITH_EXPORT DeviceInfo cpu_info();

// The CUDA devices that can be used now; empty where the build or the machine has none.
KITH_EXPORT std::vector<DeviceInfo> cuda_devices();

// Whether this library was built with its CUDA backend.
KITH_EXPORT bool built_with_cuda();

}  // namespace kith
