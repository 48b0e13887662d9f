// The plan of an exact search on any device, with the memory that it needs.
#pragma once

#include "core/planned.hpp"
#include "exact/knn_plan_cpu.hpp"
#include "exact/knn_plan_cuda.hpp"
#include "exact/search_task.hpp"

#include <cstdint>
#include <variant>

namespace kith {

// The device that `resources` asks for, `automatic` settled for this search: where its data is, if that is a GPU's
// memory. InvalidArgument where there is no such device, or data lies on another.
Device resolve_device(const SearchTask& task, const Resources& resources);

using KnnPlan = std::variant<KnnCpuPlan, KnnCudaPlan>;
const SearchBatches& batches_of(const KnnPlan& plan);
inline PlanBytes bytes_of(const KnnPlan& plan) { return {batches_of(plan).host_bytes, batches_of(plan).device_bytes}; }

using PlannedKnn = Planned<KnnPlan>;

// For that device under what the limits still allow.
PlannedKnn plan_knn(const SearchTask& task, Device device, const Resources& resources);

// What the smallest plan takes, and what the largest takes on the host.
Footprint least_plan(const SearchTask& task, Device device, const Resources& resources);
int64_t largest_plan_bytes(const SearchTask& task, Device device, const Resources& resources);

}  // namespace kith
