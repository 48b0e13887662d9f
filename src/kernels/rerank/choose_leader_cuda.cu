#include "kernels/rerank/choose_leader_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "kernels/matrix/vicinity_bounds.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    sample_numbers_kernel(const uint32_t* numbers, int64_t of, int64_t count, uint32_t* sampled) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) sampled[i] = numbers[i * of / count];
}

__global__ void __launch_bounds__(kThreads) choose_leader_kernel(ChooseLeaderTask task) {
  __shared__ double radii[kMostLeaders];
  __shared__ uint32_t followers[kMostLeaders + 1];
  for (int i = static_cast<int>(threadIdx.x); i <= task.leaders; i += kThreads) {
    if (i < task.leaders) radii[i] = task.radii[i];
    followers[i] = 0;
  }
  __syncthreads();
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (query < task.count) {
    const uint32_t limit = task.key_limits[task.queries[query]];
    int chosen = task.leaders;
    double least = HUGE_VAL;
    if (limit != 0) {
      const double reach = reach_of_limit(task.kind, key_of_ordered(limit));
      const KeyKind between = kind_between_queries(task.kind);
      for (int i = 0; i < task.leaders; ++i) {
        if (!(radii[i] < least)) continue;
        const double apart = task.distance_factor * distance_of_key(between, task.keys[i * task.stride + query]);
        if (!(apart + reach <= radii[i])) continue;
        chosen = i;
        least = radii[i];
      }
    }
    task.chosen[query] = static_cast<uint32_t>(chosen);
    atomicAdd(&followers[chosen], 1u);
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i <= task.leaders; i += kThreads) {
    if (followers[i] > 0) atomicAdd(&task.followers[i], followers[i]);
  }
}

}  // namespace

void launch_sample_numbers(const uint32_t* numbers, int64_t of, int64_t count, uint32_t* sampled, cudaStream_t stream) {
  launch(sample_numbers_kernel, Grid::over(count, kThreads), stream, numbers, of, count, sampled);
}

void launch_choose_leader(const ChooseLeaderTask& task, cudaStream_t stream) {
  launch(choose_leader_kernel, Grid::over(task.count, kThreads), stream, task);
}

}  // namespace kith
