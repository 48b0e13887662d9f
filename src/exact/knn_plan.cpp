#include "exact/knn_plan.hpp"

#include "core/cpu_target.hpp"
#include "cuda/resolve_device.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

using AnyPlan = decltype(PlannedKnn::plan);

PlanWithin<AnyPlan> plan_for(const SearchTask& task, Device device, const PlanBudget& budget) {
  return plan_on(
      device, budget, [&](const PlanBudget& left) -> AnyPlan { return plan_knn_cpu(task, left); },
      [&](const DeviceInfo& gpu, const PlanBudget& left) -> AnyPlan { return plan_knn_cuda(task, gpu, left); });
}

}  // namespace

Device resolve_device(const SearchTask& task, const Resources& resources) {
  const auto description = [&] {
    return fmt::format("exact search of {} queries in {} x {} vectors", task.shape.queries, task.rows, task.shape.cols);
  };
  const auto fits = [&](Device device) {
    return plan_fits([&](const PlanBudget& budget) { return plan_for(task, device, budget); }, resources);
  };
  return choose_device({"a search", description},
                       {task.shape.query_space, task.shape.base_space, task.request.result_space}, work_of(task.shape),
                       fits, resources);
}

PlannedKnn plan_knn(const SearchTask& task, Device device, const Resources& resources) {
  return plan_and_reserve<AnyPlan>(
      task.within() ? "the range search" : "the search",
      [&](const PlanBudget& budget) { return plan_for(task, device, budget); }, resources);
}

Footprint least_plan(const SearchTask& task, Device device, const Resources& resources) {
  return least_plan([&](const PlanBudget& budget) { return plan_for(task, device, budget); }, resources);
}

int64_t largest_plan_bytes(const SearchTask& task, Device device, const Resources& resources) {
  return bytes_of(plan_for(task, device, {kNoLimit, kNoLimit, resources.threads(), cpu_extensions()}).plan).host;
}

}  // namespace kith
