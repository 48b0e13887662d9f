// Measures the peak memory of one call whose limits other calls may share.
#pragma once

#include <kith/resources.hpp>

#include "core/memory_budget.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class PeakMemory {
 public:
  explicit PeakMemory(const Resources& resources)
      : resources_(is_of_cpus(resources)
                       ? resources.with_budgets(host_of(resources), nullptr).with_devices(resources.devices())
                       : resources.with_budgets(host_of(resources),
                                                std::make_shared<MemoryBudget>(resources.device_memory()))) {}

  // For the call: the same limits, counted apart, on all parts of a CPU or on the first of several GPUs.
  const Resources& resources() const { return resources_; }

  int64_t host_bytes() const { return resources_.host_memory()->peak(); }
  int64_t device_bytes() const { return resources_.parts() > 1 ? 0 : resources_.device_memory()->peak(); }

 private:
  static bool is_of_cpus(const Resources& resources) {
    const std::vector<DeviceParts> devices = resources.devices();
    return resources.parts() > 1 && std::all_of(devices.begin(), devices.end(), [](const DeviceParts& one) {
             return one.device.kind == DeviceKind::cpu;
           });
  }
  static std::shared_ptr<MemoryBudget> host_of(const Resources& resources) {
    return std::make_shared<MemoryBudget>(resources.host_memory());
  }

  Resources resources_;
};

}  // namespace kith
