// The loop of every exact search, on every device: batches of queries, pieces of the base, results out.
#pragma once

#include <kith/knn.hpp>

#include "exact/knn_backend.hpp"
#include "exact/knn_plan.hpp"
#include "exact/row_source.hpp"

#include <vector>

namespace kith {

// A run of the base's rows; the rows of the parts are numbered through.
struct BasePart {
  RowSource* rows = nullptr;
  const PreparedBase* ready = nullptr;  // for the plan's device, or none
};

// The device that `resources` asks for, `automatic` settled for this problem. InvalidArgument where it does not exist.
Device resolve_device(const KnnProblem& problem, const Resources& resources);

// The plan for that device under what is left of the limits.
KnnPlan plan_knn(const KnnProblem& problem, Device device, const Resources& resources);

// Where batches of results go: `destination` says where the results of queries first .. are written, `done` that they are.
struct KnnOutput {
  int64_t k = 0;  // as the caller asked: what the base has too few rows for is padded
  std::function<NeighborsView(int64_t first, int64_t count)> destination;
  std::function<void(int64_t first, const NeighborsView& part)> done;
};

void run_knn(const KnnProblem& problem, const KnnPlan& plan, RowSource& queries, const std::vector<BasePart>& base,
             const KnnOutput& output, const Resources& resources);

}  // namespace kith
