#include "cluster/draw/candidate_draws_cuda.hpp"

#include "cuda/launch.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kTreeThreads = 1024;
constexpr unsigned kWarp = 0xFFFFFFFFu;

__global__ void __launch_bounds__(kThreads) no_candidates_kernel(DrawTask task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= task.tree.rows) return;
  task.nearest[i] = HUGE_VALF;
  task.owner[i] = 0;
}

__global__ void __launch_bounds__(kThreads)
    take_nearer_kernel(DrawTask task, const float* keys, const int32_t* labels, int32_t first) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= task.tree.rows) return;
  const float key = keys[i];
  if (!(key < task.nearest[i])) return;
  task.nearest[i] = key;
  task.owner[i] = first + labels[i];
}

__device__ double step_of(const DrawTask& task, int64_t i) {
  const auto distance = static_cast<double>(task.nearest[i]);
  return task.weights == nullptr ? distance : static_cast<double>(task.weights[i]) * distance;
}

// The sum of a segment's rows, in order; 0 past the last segment.
__device__ double segment_sum(const DrawTask& task, int64_t segment) {
  if (segment >= task.tree.segments) return 0;
  return sum_children([&](int i) { return step_of(task, segment * kDrawFan + i); },
                      DrawTree::children_of(segment, task.tree.rows));
}

// A warp for each block of the tree, a lane for each segment.
__global__ void __launch_bounds__(kThreads) block_sums_kernel(DrawTask task) {
  const int64_t block = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (block >= task.tree.blocks()) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const double segment = segment_sum(task, block * kDrawFan + lane);
  const int segments = DrawTree::children_of(block, task.tree.segments);
  double sum = 0;
  for (int i = 0; i < segments; ++i) sum += __shfl_sync(kWarp, segment, i);
  if (lane == 0) task.sums[block] = sum;
}

// One block of threads: the levels above.
__global__ void __launch_bounds__(kTreeThreads) levels_kernel(DrawTask task) {
  const DrawTree& tree = task.tree;
  for (int level = 1; level < tree.levels; ++level) {
    for (int64_t node = threadIdx.x; node < tree.sizes[level]; node += kTreeThreads) {
      const double* const children = task.sums + tree.offsets[level - 1] + node * kDrawFan;
      task.sums[tree.offsets[level] + node] =
          sum_children([&](int i) { return children[i]; }, DrawTree::children_of(node, tree.sizes[level - 1]));
    }
    __syncthreads();
  }
}

// A warp for each draw: draw_row, where the lanes add up the segments of the block that it comes to.
__global__ void __launch_bounds__(kThreads)
    draw_kernel(DrawTask task, const double* shares, int64_t count, uint32_t* drawn) {
  __shared__ double segments[kWarps][kDrawFan];
  const DrawTree& tree = task.tree;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  double* const mine = segments[threadIdx.x / 32];
  const int64_t draw = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (draw >= count) return;
  const double target = shares[draw] * tree_total(tree, task.sums);
  double before = 0;
  int64_t block = 0;
  for (int level = tree.top(); level >= 0; --level) {  // all lanes alike
    const double* const children = task.sums + tree.offsets[level] + block * kDrawFan;
    block = block * kDrawFan + pass_children([&](int i) { return children[i]; },
                                             DrawTree::children_of(block, tree.sizes[level]), target, before);
  }
  mine[lane] = segment_sum(task, block * kDrawFan + lane);
  __syncwarp();
  if (lane != 0) return;
  const int64_t segment = block * kDrawFan + pass_children([&](int i) { return mine[i]; },
                                                           DrawTree::children_of(block, tree.segments), target, before);
  const int64_t first = segment * kDrawFan;
  const int64_t row = first + pass_children([&](int i) { return step_of(task, first + i); },
                                            DrawTree::children_of(segment, tree.rows), target, before);
  drawn[draw] = drawable_row(tree, block, row, [&](int64_t i) { return step_of(task, i); });
}

}  // namespace

void launch_no_candidates(const DrawTask& task, cudaStream_t stream) {
  launch(no_candidates_kernel, Grid::over(task.tree.rows, kThreads), stream, task);
}

void launch_take_nearer(const DrawTask& task, const float* keys, const int32_t* labels, int64_t first,
                        cudaStream_t stream) {
  launch(take_nearer_kernel, Grid::over(task.tree.rows, kThreads), stream, task, keys, labels,
         static_cast<int32_t>(first));
}

void launch_add_up(const DrawTask& task, cudaStream_t stream) {
  launch(block_sums_kernel, Grid::over(task.tree.blocks() * 32, kThreads), stream, task);
  if (task.tree.levels > 1) launch(levels_kernel, Grid::of(1, kTreeThreads), stream, task);
}

void launch_draw(const DrawTask& task, const double* shares, int64_t count, uint32_t* drawn, cudaStream_t stream) {
  launch(draw_kernel, Grid::over(count * 32, kThreads), stream, task, shares, count, drawn);
}

}  // namespace kith
