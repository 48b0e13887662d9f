// How an exact search will be done: pure functions of the problem, the device and the budget, so that any machine can
// plan, and test plans, for any other.
#pragma once

#include <kith/device.hpp>
#include <kith/dtype.hpp>
#include <kith/memory_space.hpp>
#include <kith/metric.hpp>

#include "core/plan_budget.hpp"
#include "kernels/panels/panel_format.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kith {

// How a filter is applied.
enum class FilterPath : uint8_t {
  none,    // it keeps every row
  mask,    // all rows are scanned, and those that it leaves out dropped
  gather,  // the rows that it keeps are copied together on the host and searched as a base of their own
  list,    // a GPU reads the rows that it keeps by their numbers, and searches them as a base of their own
};

struct KnnProblem {
  int64_t queries = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t k = 0;         // neighbours looked for: no more than rows; one more than given out, without_self
  int64_t result_k = 0;  // neighbours given out, padded
  DType query_dtype = DType::f32;
  DType base_dtype = DType::f32;
  Metric metric = Metric::l2;
  MemorySpace query_space;
  MemorySpace base_space;
  MemorySpace result_space;
  bool check_finite = true;
  bool queries_in_memory = true;  // else they are read from a file, piece by piece
  bool base_in_memory = true;
  bool results_in_memory = true;  // the caller's arrays hold them; else they go out batch by batch
  bool base_prepared = false;     // an index holds the base in the layout of the device
  bool base_checked = false;      // an index has looked at the rows when they were added
  FilterPath filter = FilterPath::none;
  int64_t unfiltered_rows = 0;  // of the base, where `rows` are those that a list keeps
  bool without_self = false;    // the queries are the base's rows, and none is its own neighbour
  bool range = false;           // all rows within a radius: k has no meaning for a GPU
  bool every_key = false;       // all keys are wanted, or the caller's code computes them: no products
};

// How the CPU chooses its candidates.
enum class CpuEngine : uint8_t {
  panels,  // many queries: tile by tile over packed panels, which are multiplied or compared
  direct,  // few queries: one pass over the rows as they lie, or over those that a prepared base's screen leaves
};

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
  int rows_per_minimum = 0;  // of the coarse path (kernels/rerank/coarse_plan.hpp); 0: another
  int64_t capacity = 0;  // candidates that a second product may find for each query; 0: whole groups are candidates
  int64_t room = 0;      // of these, as near as a neighbour can be
  int64_t retry_capacity = 0;  // the same of a query that has failed, when it is tried again
  int64_t retry_room = 0;
  int64_t selected = 0;  // groups selected for each query; 0: only their k-th minimum is found
  int64_t select_bytes = 0;
  int multiprocessors = 0;
};

struct KnnPlan {
  Device device;
  int64_t query_batch = 0;  // queries searched together; the base is passed over once per batch
  int64_t base_chunk = 0;   // rows handed to the backend at a time
  int64_t host_bytes = 0;   // what the search will allocate, at its peak
  int64_t device_bytes = 0;

  // CPU
  CpuEngine engine = CpuEngine::panels;
  PanelFormat format = PanelFormat::f32;  // of what is multiplied
  bool screens = false;                   // the direct engine looks at the prepared base's screen first
  int64_t query_block = 0;                // queries that one task searches for
  int64_t row_splits = 1;                 // tasks that share a block's rows
  int64_t panel_rows = 0;                 // rows packed at a time

  // CUDA
  int64_t pinned_bytes = 0;  // host memory that rows pass through on their way
  int64_t gather_bytes = 0;  // the same for rows by number, where none is pinned
  CudaEngine cuda_engine = CudaEngine::direct;
  int64_t query_tile = 0;  // of the direct engine, which takes what the product engine leaves
  int64_t row_tile = 0;
  int64_t hits = 0;  // range search: rows found that the device holds at a time
  ProductPlan product;
};

// For tests: what a plan for a GPU would otherwise choose itself.
struct CudaChoice {
  CudaEngine engine = CudaEngine::automatic;
  ProductEngine product = ProductEngine::automatic;
  bool second_product = false;  // also for small k
  bool coarse = false;          // the coarse path, whatever the shape
};

// What its queries are packed in, if at all.
std::optional<PanelFormat> panel_format(const KnnPlan& plan);

// What the number of queries, whether the base is prepared and what it is packed in decide on such a CPU.
CpuEngine cpu_engine(const KnnProblem& problem, const CpuExtensions& cpu);

// Throws OutOfMemory with the bytes of the smallest plan when nothing fits.
KnnPlan plan_knn_cpu(const KnnProblem& problem, const PlanBudget& budget);
KnnPlan plan_knn_cuda(const KnnProblem& problem, const DeviceInfo& device, const PlanBudget& budget,
                      const CudaChoice& choice = {});

// Whether the product engine can search a base of this kind at all; then a prepared base keeps operands for it.
bool has_operands(Metric metric, int64_t cols);

// False where the CPU would be done before a GPU had started: then nobody need ask whether there is one.
bool worth_a_gpu(const KnnProblem& problem, int threads);

// The device that `automatic` stands for: a GPU where the predicted time, its start and copies included, is shorter.
Device choose_knn_device(const KnnProblem& problem, int threads, const std::vector<DeviceInfo>& gpus);

}  // namespace kith
