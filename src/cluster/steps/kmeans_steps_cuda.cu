#include "cluster/steps/kmeans_steps_cuda.hpp"

#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/canonical.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kWideCols = 256;  // from which on a centre has a block of its own
constexpr int kWideThreads = 128;
constexpr int kWideChunk = 1024;  // columns in shared memory at a time

// One centre of the task.
struct Centre {
  double weight;
  double count;
  const float* from;
  float* out;
  const double* sums;
  bool weighted;  // by what came before

  __device__ Centre(const MoveTask& task, int64_t centre)
      : weight(task.weights[centre]),
        count(task.counts == nullptr ? 0.0 : task.counts[centre]),
        from(task.centres + centre * task.cols),
        out(task.moved + centre * task.cols),
        sums(task.sums + centre * task.cols),
        weighted(task.counts != nullptr) {}

  __device__ double mean(int64_t col) const {
    if (!weighted) return sums[col] / weight;
    const double before = static_cast<double>(from[col]) * count;
    return (before + sums[col]) / (count + weight);
  }
  // Moves one column and returns the difference.
  __device__ double move(int64_t col, bool moves, double inverse) const {
    const float before = from[col];
    const float value = moves ? static_cast<float>(mean(col) * inverse) : before;
    out[col] = value;
    return moves ? static_cast<double>(value) - static_cast<double>(before) : 0.0;
  }
};

// Sixteen threads for each centre.
__global__ void __launch_bounds__(kThreads) move_kernel(MoveTask task) {
  const int64_t number = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kCanonicalLanes;
  if (number >= task.clusters) return;
  const int64_t lane = threadIdx.x % kCanonicalLanes;
  const unsigned threads = 0xFFFFu << (threadIdx.x % 32 / kCanonicalLanes * kCanonicalLanes);
  const Centre centre(task, number);
  bool moves = centre.weight > 0;
  double inverse = 1;
  if (moves && task.spherical) {
    double squares = 0;
    for (int64_t col = lane; col < task.cols; col += kCanonicalLanes) {
      const double value = centre.mean(col);
      squares = fma(value, value, squares);
    }
    inverse = canonical_inverse_norm(warp_sum<kCanonicalLanes>(squares, threads));
    moves = inverse > 0;
  }
  double squared = 0;
  for (int64_t col = lane; col < task.cols; col += kCanonicalLanes) {
    const double moved = centre.move(col, moves, inverse);
    squared = fma(moved, moved, squared);
  }
  squared = warp_sum<kCanonicalLanes>(squared, threads);
  if (lane == 0) task.squared_moves[number] = squared;
}

// One block for each centre, for many columns: all threads divide, then sixteen of them add the squared differences in
// order. Returns their canonical tree in all threads.
template <typename Value>
__device__ double wide_squares(int64_t cols, const Value& value, double* chunk, double* result) {
  double squares = 0;
  for (int64_t first = 0; first < cols; first += kWideChunk) {
    const int count = static_cast<int>(cols - first < kWideChunk ? cols - first : kWideChunk);
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kWideThreads) chunk[i] = value(first + i);
    __syncthreads();
    if (threadIdx.x < kCanonicalLanes) {
#pragma unroll 8
      for (int i = static_cast<int>(threadIdx.x); i < count; i += kCanonicalLanes) {
        squares = fma(chunk[i], chunk[i], squares);
      }
    }
    __syncthreads();
  }
  if (threadIdx.x < kCanonicalLanes) {
    squares = warp_sum<kCanonicalLanes>(squares, 0xFFFFu);
    if (threadIdx.x == 0) *result = squares;
  }
  __syncthreads();
  return *result;
}

__global__ void __launch_bounds__(kWideThreads) move_wide_kernel(MoveTask task) {
  __shared__ double chunk[kWideChunk];
  __shared__ double results[2];
  const Centre centre(task, blockIdx.x);
  bool moves = centre.weight > 0;
  double inverse = 1;
  if (moves && task.spherical) {
    inverse = canonical_inverse_norm(wide_squares(
        task.cols, [&](int64_t col) { return centre.mean(col); }, chunk, &results[0]));
    moves = inverse > 0;
  }
  const double squared = wide_squares(
      task.cols, [&](int64_t col) { return centre.move(col, moves, inverse); }, chunk, &results[1]);
  if (threadIdx.x == 0) task.squared_moves[blockIdx.x] = squared;
}

// --- draws of candidates

constexpr int kWarps = kThreads / 32;
constexpr int kTreeThreads = 1024;

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
  for (int i = 0; i < segments; ++i) sum += __shfl_sync(kAllLanes, segment, i);
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

void launch_move_centres(const MoveTask& task, cudaStream_t stream) {
  if (task.cols >= kWideCols) {
    launch(move_wide_kernel, Grid::of(task.clusters, kWideThreads), stream, task);
  } else {
    launch(move_kernel, Grid::over(task.clusters * kCanonicalLanes, kThreads), stream, task);
  }
}

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
