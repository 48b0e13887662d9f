// The device that does a job: the one asked for, or what `automatic` stands for.
#pragma once

#include <kith/device.hpp>
#include <kith/memory_space.hpp>
#include <kith/resources.hpp>

#include "core/device_choice.hpp"
#include "core/dispatch.hpp"
#include "core/plan_budget.hpp"
#include "cuda/device_info.hpp"
#include "cuda/gpu_plan.hpp"

#include <functional>
#include <string>
#include <vector>

namespace kith {

struct DeviceRequest {
  std::string job;                  // "a search", "k-means"; for the message where it cannot be done there
  std::vector<MemorySpace> spaces;  // where its data lies
  Work work;
  std::function<bool(Device)> fits;          // whether there is a plan for the device in what memory is left
  std::function<std::string()> description;  // for the log
};

// `automatic` is where the data is, if that is a GPU's memory; else a GPU where it is predicted to take less time and
// the job fits. InvalidArgument where there is no such device, or data lies on another; Unsupported where the CPU would
// have to read a GPU's memory.
Device resolve_device(const DeviceRequest& request, const Resources& resources);

// A plan by plan_cpu(budget), or by plan_cuda(DeviceInfo, budget) with no more than the device has free.
template <typename PlanCpu, typename PlanCuda>
auto plan_on(Device device, const PlanBudget& budget, const PlanCpu& plan_cpu, const PlanCuda& plan_cuda) {
  return dispatch(
      device, [&] { return plan_cpu(budget); }, [&](int) { return plan_on_gpu(device, budget, plan_cuda); });
}

}  // namespace kith
