// Devices that Kith computes on, and their properties.
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

// "auto", "cpu", "cuda" (the first GPU) or "cuda:N"; InvalidArgument for anything else.
KITH_EXPORT Device parse_device(std::string_view name);
KITH_EXPORT std::string name_of(Device device);

// A device among several that share calls, split into parts. Each part acts as a device of its own, with threads,
// streams and a share of the memory limit. Parts of a CPU are meant for NUMA machines.
struct DeviceParts {
  Device device;
  int parts = 1;

  constexpr bool operator==(const DeviceParts&) const = default;
};

// One device, or several separated by commas: "cuda:0,cuda:1", "cuda:all" (every usable GPU), "cpu/4" (the CPU in 4
// parts), "cuda:0/3". InvalidArgument for anything else and for a device that is named twice.
KITH_EXPORT std::vector<DeviceParts> parse_devices(std::string_view names);
KITH_EXPORT std::string name_of(const std::vector<DeviceParts>& devices);

// Plain data, so that any machine can plan for any other, and tests can too.
struct DeviceInfo {
  Device device = Device::cpu();
  std::string name;
  int64_t memory_total = 0;  // bytes
  int64_t memory_free = 0;
  int threads = 1;              // CPU: hardware threads
  std::string instruction_set;  // CPU: the one that kernels use
  int multiprocessors = 0;      // CUDA
  int compute_capability = 0;   // CUDA: 90 for 9.0
};

KITH_EXPORT DeviceInfo cpu_info();

// The usable CUDA devices; empty if the build or the machine has none.
KITH_EXPORT std::vector<DeviceInfo> cuda_devices();

// Whether this library was built with its CUDA backend.
KITH_EXPORT bool built_with_cuda();

}  // namespace kith
