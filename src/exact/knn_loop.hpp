// The loop of every exact search, on every device: batches of queries, pieces of the base, results out.
#pragma once

#include <kith/knn.hpp>

#include "core/planned.hpp"
#include "exact/knn_backend.hpp"
#include "exact/search_base.hpp"
#include "rows/row_source.hpp"

#include <functional>
#include <memory>
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

// Where batches of results go.
class KnnOutput {
 public:
  virtual ~KnnOutput() = default;
  // Before the first batch: batches have up to so many queries.
  virtual void open(int64_t batch, const Resources& resources) = 0;
  // Where the results of queries first, first + 1, ... are written, and that they are.
  virtual NeighborsView destination(int64_t first, int64_t count) = 0;
  virtual void done(int64_t first, const NeighborsView& part) = 0;
};

// The queries of a search and the rows that it goes over, as `walk` hands them out.
struct KnnInput {
  RowSource& queries;
  std::function<void(const BaseStep& step)> walk;
  const KeptRows* kept = nullptr;              // of the rows walked over, where they are masked or listed
  const uint32_t* numbers = nullptr;           // the ids of the rows walked over, where they are not 0, 1, 2, ...
  const custom::TileMetric* metric = nullptr;  // a custom one, for a GPU
};

void run_knn(const SearchTask& task, const PlannedKnn& planned, const KnnInput& input, KnnOutput& output);

}  // namespace kith
