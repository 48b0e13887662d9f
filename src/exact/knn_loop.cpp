#include "exact/knn_loop.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "core/float_mode.hpp"
#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kith {
namespace {

// From keys to the metric's unit.
float distance_of(Metric metric, float key) {
  return metric == Metric::inner_product ? 0.0f - key : key;  // never -0
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
  DeviceInfo gpu = cuda_device(device.index);
  if (gpu.device == device) return gpu;
  throw InvalidArgument(fmt::format("device {} was asked for; this machine has {} usable CUDA device(s)",
                                    name_of(device), cuda_devices().size()));
}

void check_spaces(Device device, std::initializer_list<MemorySpace> data) {
  for (const MemorySpace& space : data) {
    if (space.host_readable() || Device::cuda(space.device) == device) continue;
    throw InvalidArgument(fmt::format(
        "data in the memory of cuda:{} was given to a search on {}; search there, or hand it over in host memory",
        space.device, name_of(device)));
  }
}

KnnPlan plan_for(const KnnProblem& problem, Device device, PlanBudget budget) {
  return dispatch(
      device, [&] { return plan_knn_cpu(problem, budget); },
      [&](int index) {
        const DeviceInfo info = gpu_info(Device::cuda(index));
        budget.device = std::min(budget.device, info.memory_free);
        return plan_knn_cuda(problem, info, budget);
      });
}

// With half of what is left, where that will do: other calls under the same limits want to work too.
KnnPlan plan_modestly(const KnnProblem& problem, Device device, const PlanBudget& all) {
  try {
    return plan_for(problem, device, {all.host / 2, all.device / 2, all.threads});
  } catch (const OutOfMemory&) {
    return plan_for(problem, device, all);
  }
}

}  // namespace

void KnnBackend::finish_on_device(const NeighborsView&) {
  throw InvalidState("this backend has no device memory to write to");
}

Device resolve_device(const KnnProblem& problem, const Resources& resources, std::initializer_list<MemorySpace> data) {
  Device asked = resources.device();
  for (const MemorySpace& space : data) {
    if (asked.kind == DeviceKind::automatic && !space.host_readable()) asked = Device::cuda(space.device);
  }
  check_spaces(asked, data);
  if (asked.kind == DeviceKind::cpu) return asked;
  if (asked.kind == DeviceKind::automatic) {
    const Device chosen = has_gpu_search(problem) && worth_a_gpu(problem, resources.threads())
                              ? choose_knn_device(problem, resources.threads(), cuda_devices())
                              : Device::cpu();
    resources.log(LogLevel::info, fmt::format("exact search of {} queries in {} x {} vectors on {}", problem.queries,
                                              problem.rows, problem.cols, name_of(chosen)));
    return chosen;
  }
  if (!built_with_cuda()) throw_no_cuda();
  gpu_info(asked);
  if (!has_gpu_search(problem)) {
    throw Unsupported(fmt::format("exact search by {} of {} queries in {} vectors runs on the CPU only; use device cpu",
                                  name_of(problem.metric), name_of(problem.query_dtype), name_of(problem.base_dtype)));
  }
  return asked;
}

PlannedKnn plan_knn(const KnnProblem& problem, Device device, const Resources& resources) {
  constexpr int kTries = 8;  // another call may take what this one has just planned with
  for (int i = 1;; ++i) {
    const PlanBudget all{resources.host_memory()->available(), resources.device_memory()->available(),
                         resources.threads()};
    const KnnPlan plan = plan_modestly(problem, device, all);
    try {
      return {plan, std::make_unique<Reservation>(plan.host_bytes, plan.device_bytes, resources)};
    } catch (const OutOfMemory&) {
      if (i == kTries) throw;
    }
  }
}

KnnOutput whole_output(const NeighborsView& out) {
  return {[out](int64_t first, int64_t count) {
            return NeighborsView{out.ids + first * out.k, out.distances + first * out.k, count, out.k, out.space};
          },
          {}};
}

void run_knn(const KnnProblem& problem, const PlannedKnn& planned, RowSource& queries,
             const std::vector<BasePart>& base, const KnnOutput& output) {
  const DefaultFloatMode mode;
  const KnnPlan& plan = planned.plan;
  const Resources& resources = planned.resources();
  const std::unique_ptr<KnnBackend> backend = dispatch(
      plan.device, [&] { return make_knn_cpu(problem, plan, resources); },
      [&](int) { return make_knn_cuda(problem, plan, resources); });
  const int64_t packed = problem.results_on_device ? 0 : plan.query_batch * problem.k;
  const HostBuffer neighbors(packed * static_cast<int64_t>(sizeof(uint64_t)), "the packed neighbours", resources);
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
    const NeighborsView out = output.destination(first, count);
    if (problem.results_on_device) {
      backend->finish_on_device(out);
    } else {
      backend->finish(neighbors.as<uint64_t>());
      write_neighbors(problem, neighbors.as<uint64_t>(), out);
    }
    if (output.done) output.done(first, out);
  }
  meter.finish();
}

}  // namespace kith
