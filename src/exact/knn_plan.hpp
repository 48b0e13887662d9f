// The plan of an exact search on any device, with the memory that it needs.
#pragma once

#include "core/planned.hpp"
#include "exact/knn_plan_cpu.hpp"
#include "exact/knn_plan_cuda.hpp"
#include "exact/search_task.hpp"

#include <cstdint>
#include <variant>

namespace kith {

// The device that `resources` asks for, `automatic` resolved for this search: where its data is, if that is a GPU's
// memory. InvalidArgument where there is no such device, or data lies on another.
Device resolve_device(const SearchTask& task, const Resources& resources);

using PlannedKnn = Planned<std::variant<KnnCpuPlan, KnnCudaPlan>>;
inline const KnnPlan& plan_of(const decltype(PlannedKnn::plan)& plan) {
  return std::visit([](const KnnPlan& any) -> const KnnPlan& { return any; }, plan);
}
inline Footprint bytes_of(const decltype(PlannedKnn::plan)& plan) {
  return {plan_of(plan).host_bytes, plan_of(plan).device_bytes};
}

// Plans for that device within the available memory.
PlannedKnn plan_knn(const SearchTask& task, Device device, const Resources& resources);

// The memory of the smallest plan; and the host memory of the largest.
Footprint least_plan(const SearchTask& task, Device device, const Resources& resources);
int64_t largest_plan_bytes(const SearchTask& task, Device device, const Resources& resources);

}  // namespace kith
