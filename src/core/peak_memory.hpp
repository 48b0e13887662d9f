// Measures the peak memory of one call whose limits other calls may share.
#pragma once

#include <kith/resources.hpp>

#include "core/memory_budget.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// Whether a call that several GPUs are given for has all of them, or the first alone.
enum class GivenGpus : uint8_t { first, all };

class PeakMemory {
 public:
  explicit PeakMemory(const Resources& resources, GivenGpus gpus = GivenGpus::first)
      : resources_(counted_apart(resources, gpus)) {}

  // For the call: the same limits, counted apart. All parts of a CPU, all or the first of several GPUs, and the first of
  // CPUs and GPUs.
  const Resources& resources() const { return resources_; }

  int64_t host_bytes() const { return resources_.host_memory()->peak(); }
  // The peak of the GPU that held most; with several GPUs, which are not counted apart, since the resources were made.
  int64_t device_bytes() const {
    if (resources_.parts() == 1) return resources_.device_memory()->peak();
    int64_t most = 0;
    for (const DeviceParts& one : resources_.devices()) {
      if (one.device.kind == DeviceKind::cuda) {
        most = std::max(most, resources_.device_memory(one.device.index)->peak());
      }
    }
    return most;
  }

 private:
  static Resources counted_apart(const Resources& resources, GivenGpus gpus) {
    const auto host = std::make_shared<MemoryBudget>(resources.host_memory());
    const std::vector<DeviceParts> devices = resources.devices();
    const bool on_gpus = resources.device().kind == DeviceKind::cuda;
    const bool alike = std::all_of(devices.begin(), devices.end(), [&](const DeviceParts& one) {
      return one.device.kind == devices.front().device.kind;
    });
    if (resources.parts() == 1 || !alike || (on_gpus && gpus == GivenGpus::first)) {
      return resources.with_budgets(host, device_of(resources));
    }
    const bool one_gpu = on_gpus && devices.size() == 1;
    return resources.with_budgets(host, one_gpu ? device_of(resources) : nullptr).with_devices(devices);
  }
  static std::shared_ptr<MemoryBudget> device_of(const Resources& resources) {
    return std::make_shared<MemoryBudget>(resources.device_memory());
  }

  Resources resources_;
};

}  // namespace kith
