// Chooses the device for a job: the requested one, or the one that `automatic` stands for.
#pragma once

#include <kith/device.hpp>
#include <kith/memory_space.hpp>
#include <kith/resources.hpp>

#include "core/dispatch.hpp"
#include "core/machine_model.hpp"
#include "core/plan_budget.hpp"
#include "core/reused_memory.hpp"
#include "cuda/device_info.hpp"
#include "cuda/gpu_plan.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

struct DeviceJob {
  std::string_view name;                     // "a search", "k-means"; for the message where it cannot be done there
  std::function<std::string()> description;  // for the log
  // Whether the device can change the result: then only the machine and the problem decide, not the number of threads
  // or the free memory.
  bool changes_result = false;
};

// The device for data in these spaces and this work. `automatic` means the GPU that holds the data, if one does;
// otherwise a GPU if it is predicted to be faster (core/machine_model.hpp) and the job fits: `fits` tells whether there
// is a plan for the available memory; without it the job always fits. Throws InvalidArgument if there is no such device
// or data is on another one, Unsupported if the CPU would have to read a GPU's memory.
Device choose_device(const DeviceJob& job, const ReusedVector<MemorySpace>& spaces, const Counts& counts,
                     const std::function<bool(Device)>& fits, const Resources& resources);

// The device whose memory a call is counted for: the one that holds the rows, or the requested one; otherwise the CPU,
// which does jobs for which a GPU has no room.
inline Device counted_device(MemorySpace rows, const Resources& resources) {
  if (!rows.host_readable()) return Device::cuda(rows.device);
  return resources.device().kind == DeviceKind::cuda ? resources.device() : Device::cpu();
}

// Plans by plan_cpu(budget), or by plan_cuda(DeviceInfo, budget) within the device's free memory.
template <typename PlanCpu, typename PlanCuda>
auto plan_on(Device device, const PlanBudget& budget, const PlanCpu& plan_cpu, const PlanCuda& plan_cuda) {
  return dispatch(
      device, [&] { return PlanWithin{plan_cpu(budget)}; },
      [&](int) { return plan_on_gpu(device, budget, plan_cuda); });
}

}  // namespace kith
