// The loop of every exact search, on every device: batches of queries, pieces of the base, results out.
#pragma once

#include <kith/knn.hpp>

#include "core/reservation.hpp"
#include "exact/knn_backend.hpp"
#include "exact/knn_plan.hpp"
#include "exact/row_source.hpp"

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

namespace kith {

// A run of the base's rows; the rows of the parts are numbered through.
struct BasePart {
  RowSource* rows = nullptr;
  const PreparedBase* ready = nullptr;  // for the plan's device, or none
};

// The device that `resources` asks for, `automatic` settled for this problem: where its data is, if that is a GPU's
// memory. InvalidArgument where there is no such device, or data lies on another.
Device resolve_device(const KnnProblem& problem, const Resources& resources,
                      std::initializer_list<MemorySpace> data = {});

// A plan with the memory that it needs.
struct PlannedKnn {
  KnnPlan plan;
  std::unique_ptr<Reservation> memory;

  const Resources& resources() const { return memory->resources(); }
};

// For that device under what is left of the limits.
PlannedKnn plan_knn(const KnnProblem& problem, Device device, const Resources& resources);

// Where batches of results go: `destination` says where the results of queries first .. are written, `done` that they
// are.
struct KnnOutput {
  std::function<NeighborsView(int64_t first, int64_t count)> destination;
  std::function<void(int64_t first, const NeighborsView& part)> done;
};

// Into one array for all queries.
KnnOutput whole_output(const NeighborsView& out);

void run_knn(const KnnProblem& problem, const PlannedKnn& planned, RowSource& queries,
             const std::vector<BasePart>& base, const KnnOutput& output);

}  // namespace kith
