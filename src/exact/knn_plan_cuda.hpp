// How an exact search will be done on a GPU: pure functions of the task, the device and the budget, so that any machine
// can plan, and test plans, for any GPU.
#pragma once

#include <kith/device.hpp>
#include <kith/metric.hpp>

#include "core/plan_budget.hpp"
#include "exact/search_batches.hpp"
#include "exact/search_task.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cstdint>

namespace kith {

// How a GPU finds a query's neighbours.
enum class CudaEngine : uint8_t {
  automatic,
  product,  // products on the matrix units choose candidates; queries of which they cannot be sure go the other way
  direct,   // every canonical key
};

// Of the product engine.
struct ProductPlan {
  ProductEngine engine = ProductEngine::automatic;
  OperandType operands = OperandType::half;
  bool operands_ready = false;  // a prepared base has them
  int64_t queries = 0;          // searched at a time
  int64_t rows = 0;             // of the base, at a time
  int tiles_per_group = 2;
  int rows_per_minimum = 0;  // of the coarse path (coarse_plan_cuda.hpp); 0: another
  int64_t capacity = 0;  // candidates that a second product may find for each query; 0: whole groups are candidates
  int64_t room = 0;      // of these, as near as a neighbour can be
  int64_t retry_capacity = 0;  // the same of a query that has failed, when it is tried again
  int64_t retry_room = 0;
  int64_t selected = 0;  // groups selected for each query; 0: only their k-th minimum is found
  int64_t select_bytes = 0;
  int multiprocessors = 0;
};

struct KnnCudaPlan : SearchBatches {
  int64_t pinned_bytes = 0;  // host memory that rows pass through on their way
  int64_t gather_bytes = 0;  // the same for rows by number, where none is pinned
  CudaEngine engine = CudaEngine::direct;
  int64_t query_tile = 0;  // of the direct engine, which takes what the product engine leaves
  int64_t row_tile = 0;
  int64_t hits = 0;  // range search: rows found that the device holds at a time
  ProductPlan product;

  bool products() const { return engine == CudaEngine::product; }
};

// For tests: what a plan would otherwise choose itself.
struct CudaChoice {
  CudaEngine engine = CudaEngine::automatic;
  ProductEngine product = ProductEngine::automatic;
  bool second_product = false;  // also for small k
  bool coarse = false;          // the coarse path, whatever the shape
};

// Throws OutOfMemory with the bytes of the smallest plan when nothing fits.
KnnCudaPlan plan_knn_cuda(const SearchTask& task, const DeviceInfo& device, const PlanBudget& budget,
                          const CudaChoice& choice = {});

// Whether the product engine can search a base of this kind at all; then a prepared base keeps operands for it.
bool has_operands(Metric metric, int64_t cols);

}  // namespace kith
