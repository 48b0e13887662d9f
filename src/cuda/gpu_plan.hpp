// A plan for a GPU within the memory that is free there.
//
// The driver is asked only if the answer matters: a plan is first made as if all of the device's memory were free, and
// is used if Kith's pool has enough unused memory from earlier calls. Otherwise the driver is asked and a new plan
// made. Results are the same with any plan.
#pragma once

#include <kith/device.hpp>

#include "core/planned.hpp"
#include "cuda/device_info.hpp"

#include <algorithm>

namespace kith {

// plan_with(gpu, budget) makes the best plan that fits, or the smallest.
template <typename PlanWith>
auto plan_on_gpu(Device device, const PlanBudget& budget, const PlanWith& plan_with) {
  const auto within = [&](const DeviceInfo& gpu) {
    PlanBudget smaller = budget;
    smaller.device = std::min(budget.device, gpu.memory_free);
    return PlanWithin{plan_with(gpu, smaller), gpu.memory_free};
  };
  auto best = within(usable_gpu_when_idle(device));
  if (bytes_of(best.plan).device <= idle_pool_bytes(device.index)) return best;
  return within(usable_gpu(device));
}

}  // namespace kith
