// The device that does a job: the one asked for, or what `automatic` stands for.
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
  // Whether the device can change the result: then the machine and the problem alone decide, not the number of threads
  // or the memory that is free.
  bool changes_result = false;
};

// The device for data in these spaces and so much work. `automatic` is where the data is, if that is a GPU's memory;
// else a GPU where it is predicted to take less time (core/machine_model.hpp) and the job fits there: `fits` says
// whether there is a plan for it in what memory is left, none that there always is. InvalidArgument where there is no
// such device, or data lies on another; Unsupported where the CPU would have to read a GPU's memory.
Device choose_device(const DeviceJob& job, const ReusedVector<MemorySpace>& spaces, const Counts& counts,
                     const std::function<bool(Device)>& fits, const Resources& resources);

// The device whose memory a call is counted for: where the rows lie, or the one asked for; else the CPU, which does
// what a GPU has no room for.
inline Device counted_device(MemorySpace rows, const Resources& resources) {
  if (!rows.host_readable()) return Device::cuda(rows.device);
  return resources.device().kind == DeviceKind::cuda ? resources.device() : Device::cpu();
}

// A plan by plan_cpu(budget), or by plan_cuda(DeviceInfo, budget) with no more than the device has free.
template <typename PlanCpu, typename PlanCuda>
auto plan_on(Device device, const PlanBudget& budget, const PlanCpu& plan_cpu, const PlanCuda& plan_cuda) {
  return dispatch(
      device, [&] { return PlanWithin{plan_cpu(budget)}; },
      [&](int) { return plan_on_gpu(device, budget, plan_cuda); });
}

}  // namespace kith
