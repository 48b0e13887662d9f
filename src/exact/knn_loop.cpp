#include "exact/knn_loop.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

// From keys to the metric's unit.
float distance_of(Metric metric, float key) {
  switch (metric) {
    case Metric::l2: return std::sqrt(key);
    case Metric::inner_product: return 0.0f - key;  // never -0
    default: return key;
  }
}

void write_neighbors(const KnnProblem& problem, const uint64_t* neighbors, const NeighborsView& out) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nothing = larger_is_nearer(problem.metric) ? -kInfinity : kInfinity;
  for (int64_t q = 0; q < out.queries; ++q) {
    for (int64_t i = 0; i < out.k; ++i) {
      const uint64_t neighbor = i < problem.k ? neighbors[q * problem.k + i] : kPadding;
      const bool real = neighbor != kPadding;
      out.ids[q * out.k + i] = real ? static_cast<int64_t>(row_of(neighbor)) : -1;
      out.distances[q * out.k + i] = real ? distance_of(problem.metric, key_of_ordered(ordered_of(neighbor))) : nothing;
    }
  }
}

DeviceInfo gpu_info(Device device) {
  const std::vector<DeviceInfo> gpus = cuda_devices();
  for (const DeviceInfo& gpu : gpus) {
    if (gpu.device == device) return gpu;
  }
  throw InvalidArgument(fmt::format("device {} was asked for; this machine has {} usable CUDA device(s)", name_of(device),
                                    gpus.size()));
}

}  // namespace

Device resolve_device(const KnnProblem& problem, const Resources& resources) {
  const Device asked = resources.device();
  if (asked.kind == DeviceKind::cpu) return asked;
  if (asked.kind == DeviceKind::automatic) {
    const Device chosen = choose_knn_device(problem, resources.threads(), cuda_devices());
    resources.log(LogLevel::info, fmt::format("exact search of {} queries in {} x {} vectors on {}", problem.queries,
                                              problem.rows, problem.cols, name_of(chosen)));
    return chosen;
  }
  if (!built_with_cuda()) throw Unsupported("this build of Kith has no CUDA backend; use device cpu or auto");
  gpu_info(asked);
  return asked;
}

KnnPlan plan_knn(const KnnProblem& problem, Device device, const Resources& resources) {
  PlanBudget budget{resources.host_memory()->available(), resources.device_memory()->available(), resources.threads()};
  return dispatch(
      device, [&] { return plan_knn_cpu(problem, budget); },
      [&](int index) {
        const DeviceInfo info = gpu_info(Device::cuda(index));
        budget.device = std::min(budget.device, info.memory_free);
        return plan_knn_cuda(problem, info, budget);
      });
}

void run_knn(const KnnProblem& problem, const KnnPlan& plan, RowSource& queries, const std::vector<BasePart>& base,
             const KnnOutput& output, const Resources& resources) {
  const std::unique_ptr<KnnBackend> backend = dispatch(
      plan.device, [&] { return make_knn_cpu(problem, plan, resources); },
      [&](int) { return make_knn_cuda(problem, plan, resources); });
  const HostBuffer neighbors(plan.query_batch * problem.k * static_cast<int64_t>(sizeof(uint64_t)), "the packed neighbours",
                             resources);
  ProgressMeter meter("search", problem.queries * problem.rows, resources);
  for (int64_t first = 0; first < problem.queries; first += plan.query_batch) {
    const int64_t count = std::min(plan.query_batch, problem.queries - first);
    backend->begin(queries.fetch(first, count), first);
    int64_t first_row = 0;
    for (const BasePart& part : base) {
      const int64_t rows = part.rows->rows();
      const int64_t step = part.ready != nullptr ? rows : std::min(plan.base_chunk, rows);
      for (int64_t at = 0; at < rows; at += step) {
        backend->scan(part.rows->fetch(at, std::min(step, rows - at)), first_row + at, part.ready, meter);
        meter.poll();
      }
      first_row += rows;
    }
    backend->finish(neighbors.as<uint64_t>());
    const NeighborsView out = output.destination(first, count);
    write_neighbors(problem, neighbors.as<uint64_t>(), out);
    if (output.done) output.done(first, out);
  }
  meter.finish();
}

}  // namespace kith
