#include "exact/knn_loop.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "core/float_mode.hpp"
#include "core/ordered_key.hpp"
#include "cuda/resolve_device.hpp"
#include "exact/metric_unit.hpp"
#include "kernels/select/other_neighbors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kith {
namespace {

// The packed neighbours of queries first_query, first_query + 1, ...
void write_neighbors(const KnnProblem& problem, const uint64_t* neighbors, const uint32_t* numbers, int64_t first_query,
                     const NeighborsView& out) {
  const float nothing = distance_of_nothing(problem.metric);
  for (int64_t q = 0; q < out.queries; ++q) {
    const uint32_t itself = problem.without_self ? static_cast<uint32_t>(first_query + q) : OtherNeighbors::kNoOne;
    OtherNeighbors others{neighbors + q * problem.k, problem.k, itself};
    for (int64_t i = 0; i < out.k; ++i) {
      const uint64_t neighbor = others.next();
      const bool real = neighbor != kPadding;
      const uint32_t row = row_of(neighbor);
      out.ids[q * out.k + i] = !real ? -1 : static_cast<int64_t>(numbers == nullptr ? row : numbers[row]);
      out.distances[q * out.k + i] = real ? distance_of(problem.metric, key_of_ordered(ordered_of(neighbor))) : nothing;
    }
  }
}

KnnPlan plan_for(const KnnProblem& problem, Device device, const PlanBudget& budget) {
  return plan_on(
      device, budget, [&](const PlanBudget& left) { return plan_knn_cpu(problem, left); },
      [&](const DeviceInfo& gpu, const PlanBudget& left) { return plan_knn_cuda(problem, gpu, left); });
}

}  // namespace

void KnnBackend::finish_on_device(const NeighborsView&) {
  throw InvalidState("this backend has no device memory to write to");
}

Device resolve_device(const KnnProblem& problem, const Resources& resources) {
  DeviceRequest request;
  request.job = "a search";
  request.spaces = {problem.query_space, problem.base_space, problem.result_space};
  request.work = work_of(problem);
  request.fits = [&](Device device) {
    return plan_fits([&](const PlanBudget& budget) { return plan_for(problem, device, budget); }, resources);
  };
  request.description = [&] {
    return fmt::format("exact search of {} queries in {} x {} vectors", problem.queries, problem.rows, problem.cols);
  };
  return resolve_device(request, resources);
}

PlannedKnn plan_knn(const KnnProblem& problem, Device device, const Resources& resources) {
  return plan_and_reserve<KnnPlan>([&](const PlanBudget& budget) { return plan_for(problem, device, budget); },
                                   resources);
}

void run_knn(const KnnProblem& problem, const PlannedKnn& planned, const KnnInput& input, KnnOutput& output) {
  const DefaultFloatMode mode;
  const KnnPlan& plan = planned.plan;
  const Resources& resources = planned.resources();
  const std::unique_ptr<KnnBackend> backend = dispatch(
      plan.device, [&] { return make_knn_cpu(problem, plan, input.kept, resources); },
      [&](int) { return make_knn_cuda(problem, plan, input.kept, input.metric, resources); });
  const int64_t packed = problem.result_space.host_readable() ? plan.query_batch * problem.k : 0;
  const HostBuffer neighbors(packed * static_cast<int64_t>(sizeof(uint64_t)), "the packed neighbours", resources);
  input.queries.open(plan.query_batch, resources);
  output.open(plan.query_batch, resources);
  ProgressMeter meter("search", problem.queries * problem.rows, resources);
  for (int64_t first = 0; first < problem.queries; first += plan.query_batch) {
    const int64_t count = std::min(plan.query_batch, problem.queries - first);
    backend->begin(input.queries.fetch(first, count), first);
    input.walk([&](const MatrixView& rows, int64_t first_row, const PreparedBase* ready) {
      backend->scan(rows, first_row, ready, meter);
      meter.poll();
    });
    const NeighborsView out = output.destination(first, count);
    if (out.space.host_readable()) {
      backend->finish(neighbors.as<uint64_t>());
      write_neighbors(problem, neighbors.as<uint64_t>(), input.numbers, first, out);
    } else {
      backend->finish_on_device(out);
    }
    output.done(first, out);
  }
  meter.finish();
}

}  // namespace kith
