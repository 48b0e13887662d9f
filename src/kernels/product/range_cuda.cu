// Windows: a thread for each query. Tiles: a block for each query reads its keys twice, to count and to write.
#include "kernels/product/range_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/error.hpp"
#include "kernels/product/candidate_window.hpp"
#include "kernels/product/range_places_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) range_windows_kernel(RangeWindowTask task) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (query >= task.queries) return;
  const QueryFacts facts = task.query_facts[query];
  const BaseFacts base = *task.base_facts;
  WindowProblem problem;
  problem.kind = task.kind;
  problem.bytes = task.type == OperandType::bytes;
  problem.cols = task.cols;
  problem.scale = window_scale(problem, base, facts);
  const CandidateWindow window =
      range_window(problem, {facts.operand, facts.squared_norm, facts.key_offset}, base.rows, task.most);
  const bool sure = window.sure && facts.unsure == 0 && base.unsure == 0;
  task.thresholds[query] = sure ? window.threshold : -HUGE_VALF;
  task.key_limits[query] = sure ? ordered_key(task.most) : 0;
}

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

void launch_range_windows(const RangeWindowTask& task, cudaStream_t stream) {
  if (task.queries == 0) return;
  range_windows_kernel<<<static_cast<unsigned>(divide_rounding_up(task.queries, kThreads)), kThreads, 0, stream>>>(
      task);
  KITH_CUDA_CHECK_LAUNCH("range_windows_kernel");
}

void launch_range_tile(const RangeTileTask& task, cudaStream_t stream) {
  if (task.queries == 0) return;
  range_tile_kernel<<<static_cast<unsigned>(task.queries), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("range_tile_kernel");
}

}  // namespace kith
