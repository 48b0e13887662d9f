#include "kernels/rerank/range_tile_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/error.hpp"
#include "kernels/rerank/range_places_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) range_tile_kernel(RangeTileTask task) {
  __shared__ uint32_t count;
  __shared__ RangePlaces places;
  const int64_t query = blockIdx.x;
  if (task.target.counts[query] != kNotDelivered) return;
  const uint32_t* const keys = task.keys + query * task.stride;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  uint32_t mine = 0;
  for (int64_t i = threadIdx.x; i < task.rows; i += kThreads) mine += keys[i] <= task.limit ? 1 : 0;
  if (mine > 0) atomicAdd(&count, mine);
  __syncthreads();
  if (!take_places(task.target, query, count, places)) return;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < task.rows; i += kThreads) {
    if (keys[i] > task.limit) continue;
    const uint32_t number = task.numbers == nullptr ? task.first_row + static_cast<uint32_t>(i) : task.numbers[i];
    task.target.hits[places.start + atomicAdd(&count, 1u)] = pack_neighbor(keys[i], number);
  }
}

}  // namespace

void launch_range_tile(const RangeTileTask& task, cudaStream_t stream) {
  if (task.queries == 0) return;
  range_tile_kernel<<<static_cast<unsigned>(task.queries), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("range_tile_kernel");
}

}  // namespace kith
