#include "exact/knn_loop.hpp"

#include <kith/error.hpp>

#include "core/cpu_target.hpp"
#include "core/dispatch.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/result_exit.hpp"
#include "cuda/resolve_device.hpp"
#include "kernels/select/other_neighbors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kith {
namespace {

// The packed neighbours of queries first_query, first_query + 1, ...
void write_neighbors(const SearchTask& task, const uint64_t* neighbors, const uint32_t* numbers, int64_t first_query,
                     const NeighborsView& out) {
  const ResultExit result(task.shape.metric, numbers);
  for (int64_t q = 0; q < out.queries; ++q) {
    const uint32_t itself = task.wish.without_self ? static_cast<uint32_t>(first_query + q) : OtherNeighbors::kNoOne;
    OtherNeighbors others{neighbors + q * task.scope.k, task.scope.k, itself};
    for (int64_t i = 0; i < out.k; ++i) {
      const uint64_t neighbor = others.next();
      out.ids[q * out.k + i] = result.id(neighbor);
      out.distances[q * out.k + i] = result.distance(neighbor);
    }
  }
}

KnnPlan plan_for(const SearchTask& task, Device device, const PlanBudget& budget) {
  return plan_on(
      device, budget, [&](const PlanBudget& left) -> KnnPlan { return plan_knn_cpu(task, left); },
      [&](const DeviceInfo& gpu, const PlanBudget& left) -> KnnPlan { return plan_knn_cuda(task, gpu, left); });
}

}  // namespace

void KnnBackend::finish_on_device(const NeighborsView&) {
  throw InvalidState("this backend has no device memory to write to");
}

const SearchBatches& batches_of(const KnnPlan& plan) {
  return std::visit([](const auto& of) -> const SearchBatches& { return of; }, plan);
}

Device resolve_device(const SearchTask& task, const Resources& resources) {
  const auto description = [&] {
    return fmt::format("exact search of {} queries in {} x {} vectors", task.shape.queries, task.scope.rows,
                       task.shape.cols);
  };
  const auto fits = [&](Device device) {
    return plan_fits([&](const PlanBudget& budget) { return plan_for(task, device, budget); }, resources);
  };
  return choose_device({"a search", description},
                       {task.shape.query_space, task.shape.base_space, task.wish.result_space}, work_of(task.shape),
                       fits, resources);
}

PlannedKnn plan_knn(const SearchTask& task, Device device, const Resources& resources) {
  return plan_and_reserve<KnnPlan>([&](const PlanBudget& budget) { return plan_for(task, device, budget); }, resources);
}

Footprint least_plan(const SearchTask& task, Device device, const Resources& resources) {
  return least_plan([&](const PlanBudget& budget) { return plan_for(task, device, budget); }, resources);
}

int64_t largest_plan_bytes(const SearchTask& task, Device device, const Resources& resources) {
  return bytes_of(plan_for(task, device, {kNoLimit, kNoLimit, resources.threads(), cpu_extensions()})).host;
}

void run_knn(const SearchTask& task, const PlannedKnn& planned, const KnnInput& input, KnnOutput& output) {
  const DefaultFloatMode mode;
  const int64_t batch = batches_of(planned.plan).query_batch;
  const Resources& resources = planned.resources();
  const std::unique_ptr<KnnBackend> backend = dispatch(
      batches_of(planned.plan).device,
      [&] { return make_knn_cpu(task, std::get<KnnCpuPlan>(planned.plan), input.kept, resources); },
      [&](int) {
        return make_knn_cuda(task, std::get<KnnCudaPlan>(planned.plan), input.kept, input.metric, resources);
      });
  const int64_t packed = task.wish.result_space.host_readable() ? batch * task.scope.k : 0;
  const HostArray<uint64_t> neighbors(packed, "the packed neighbours", resources);
  input.queries.open(batch, resources);
  output.open(batch, resources);
  ProgressMeter meter("search", task.shape.queries * task.scope.rows, resources);
  for (int64_t first = 0; first < task.shape.queries; first += batch) {
    const int64_t count = std::min(batch, task.shape.queries - first);
    backend->begin(input.queries.fetch(first, count), first);
    input.walk([&](const MatrixView& rows, int64_t first_row, const PreparedBase* ready) {
      backend->scan(rows, first_row, ready, meter);
      meter.poll();
    });
    const NeighborsView out = output.destination(first, count);
    if (out.space.host_readable()) {
      backend->finish(neighbors.data());
      write_neighbors(task, neighbors.data(), input.numbers, first, out);
    } else {
      backend->finish_on_device(out);
    }
    output.done(first, out);
  }
  meter.finish();
}

}  // namespace kith
