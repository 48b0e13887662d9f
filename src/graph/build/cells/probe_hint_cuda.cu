#include "graph/build/cells/probe_hint_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/launch.hpp"

namespace kith {
namespace {

constexpr int kThreads = 128;

// The first place of a cell among a row's, looked for by a warp.
__device__ uint32_t place_of_cell(const int64_t* ranks, int64_t ranked, int64_t cell) {
  auto place = static_cast<uint32_t>(ranked);
  for (int64_t i = threadIdx.x % 32; i < ranked; i += 32) {
    if (ranks[i] == cell) place = min(place, static_cast<uint32_t>(i));
  }
  return __reduce_min_sync(0xFFFFFFFFu, place);
}

__global__ void __launch_bounds__(kThreads) places_kernel(HintTask task) {
  const int64_t pair = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (pair >= task.control_rows * task.per_row) return;
  const int64_t row = pair / task.per_row;
  const int64_t neighbor = task.control_rows + pair;
  const uint32_t there = place_of_cell(task.ranks + row * task.ranked, task.ranked, task.own[neighbor]);
  const uint32_t back = place_of_cell(task.ranks + neighbor * task.ranked, task.ranked, task.own[row]);
  if (threadIdx.x % 32 == 0) task.places[pair] = min(there, back);
}

}  // namespace

void launch_hint_places(const HintTask& task, cudaStream_t stream) {
  const int64_t pairs = task.control_rows * task.per_row;
  launch(places_kernel, Grid::of(divide_up(pairs, kThreads / 32), kThreads), stream, task);
}

}  // namespace kith
