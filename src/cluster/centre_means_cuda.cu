#include "cluster/centre_means_cuda.hpp"

#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "kernels/distance/canonical.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kWideCols = 256;  // from which on a centre has a block of its own
constexpr int kWideThreads = 128;
constexpr int kWideChunk = 1024;  // columns in shared memory at a time

// canonical_tree of the sixteen threads' lanes, in all of them.
__device__ double tree(double lane, unsigned threads) {
  KITH_UNROLL
  for (int apart = kCanonicalLanes / 2; apart > 0; apart /= 2) {
    lane += __shfl_down_sync(threads, lane, static_cast<unsigned>(apart), kCanonicalLanes);
  }
  return __shfl_sync(threads, lane, 0, kCanonicalLanes);
}

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
  // Returns what the column has moved by.
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
    inverse = canonical_inverse_norm(tree(squares, threads));
    moves = inverse > 0;
  }
  double squared = 0;
  for (int64_t col = lane; col < task.cols; col += kCanonicalLanes) {
    const double moved = centre.move(col, moves, inverse);
    squared = fma(moved, moved, squared);
  }
  squared = tree(squared, threads);
  if (lane == 0) task.squared_moves[number] = squared;
}

// A block for each centre, where there are many columns: all threads divide, then sixteen of them add the squares of
// what they found in order. In all threads: the tree of these.
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
    squares = tree(squares, 0xFFFFu);
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

}  // namespace

void launch_move_centres(const MoveTask& task, cudaStream_t stream) {
  if (task.cols >= kWideCols) {
    launch(move_wide_kernel, Grid::of(task.clusters, kWideThreads), stream, task);
  } else {
    launch(move_kernel, Grid::over(task.clusters * kCanonicalLanes, kThreads), stream, task);
  }
}

}  // namespace kith
