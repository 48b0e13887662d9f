#include "kernels/select/pack_selected_cuda.hpp"

#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "cuda/launch.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__device__ uint64_t neighbor_at(const PackSelectedTask& task, int64_t i) {
  const int32_t column = task.columns[i];
  if (column < 0) return kPadding;
  const uint32_t row = task.numbers == nullptr ? static_cast<uint32_t>(task.first_row + column) : task.numbers[column];
  return pack_neighbor(ordered_key(task.keys[i]), row);
}

__global__ void __launch_bounds__(kThreads) pack_selected_kernel(PackSelectedTask task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < task.count) task.neighbors[i] = neighbor_at(task, i);
}

__global__ void __launch_bounds__(kThreads)
    write_selected_kernel(PackSelectedTask task, int64_t k, ResultExit exit, NeighborsView out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= out.queries * out.k) return;
  const int64_t place = i % out.k;
  const uint64_t neighbor = place < k ? neighbor_at(task, i / out.k * k + place) : kPadding;
  out.ids[i] = exit.id(neighbor);
  out.distances[i] = exit.distance(neighbor);
}

}  // namespace

void launch_pack_selected(const PackSelectedTask& task, cudaStream_t stream) {
  launch(pack_selected_kernel, Grid::over(task.count, kThreads), stream, task);
}

void launch_write_selected(const PackSelectedTask& task, int64_t k, Metric metric, const NeighborsView& out,
                           cudaStream_t stream) {
  launch(write_selected_kernel, Grid::over(out.queries * out.k, kThreads), stream, task, k, ResultExit(metric), out);
}

}  // namespace kith
