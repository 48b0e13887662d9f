// How an exact search will be done on a GPU: pure functions of the task, the device and the budget, so that any machine
// can plan, and test plans, for any GPU.
#pragma once

#include <kith/device.hpp>
#include <kith/metric.hpp>

#include "core/plan_budget.hpp"
#include "exact/cuda_search_plan.hpp"

#include <cstdint>

namespace kith {

// `always_by_tiles`: and candidates are re-ranked by tiles of rows wherever that can be.
enum class CoarsePath : uint8_t { automatic, always, always_by_tiles, never };

// Overrides of what a plan would choose itself.
struct CudaChoice {
  CudaEngine engine = CudaEngine::automatic;
  ProductEngine product = ProductEngine::automatic;
  bool second_product = false;  // also for small k
  CoarsePath coarse = CoarsePath::automatic;
  ApartSteps apart = {};
};

// The smallest plan where nothing fits.
KnnCudaPlan plan_knn_cuda(const SearchTask& task, const DeviceInfo& device, const PlanBudget& budget,
                          const CudaChoice& choice = {});

// Whether the product engine can search such a base; then a prepared base keeps operands for it.
bool has_operands(Metric metric, int64_t cols);

}  // namespace kith
