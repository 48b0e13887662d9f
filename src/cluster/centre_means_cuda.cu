#include "cluster/centre_means_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "kernels/distance/canonical.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

// canonical_tree of the sixteen threads' lanes, in all of them.
__device__ double tree(double lane, unsigned threads) {
  KITH_UNROLL
  for (int apart = kCanonicalLanes / 2; apart > 0; apart /= 2) {
    lane += __shfl_down_sync(threads, lane, static_cast<unsigned>(apart), kCanonicalLanes);
  }
  return __shfl_sync(threads, lane, 0, kCanonicalLanes);
}

__global__ void __launch_bounds__(kThreads) move_kernel(MoveTask task) {
  const int64_t centre = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kCanonicalLanes;
  if (centre >= task.clusters) return;
  const int64_t lane = threadIdx.x % kCanonicalLanes;
  const unsigned threads = 0xFFFFu << (threadIdx.x % 32 / kCanonicalLanes * kCanonicalLanes);
  const double weight = task.weights[centre];
  const float* const from = task.centres + centre * task.cols;
  float* const out = task.moved + centre * task.cols;
  const double* const sums = task.sums + centre * task.cols;
  const double count = task.counts == nullptr ? 0.0 : task.counts[centre];
  const auto mean = [&](int64_t col) {
    if (task.counts == nullptr) return sums[col] / weight;
    const double before = static_cast<double>(from[col]) * count;
    return (before + sums[col]) / (count + weight);
  };
  bool moves = weight > 0;
  double inverse = 1;
  if (moves && task.spherical) {
    double squares = 0;
    for (int64_t col = lane; col < task.cols; col += kCanonicalLanes) {
      const double value = mean(col);
      squares = fma(value, value, squares);
    }
    inverse = canonical_inverse_norm(tree(squares, threads));
    moves = inverse > 0;
  }
  // Some columns are read, and divided, before any is written: `moved` may be the centres themselves.
  constexpr int kAhead = 8;
  double squared = 0;
  for (int64_t first = lane; first < task.cols; first += kAhead * kCanonicalLanes) {
    float before[kAhead] = {};
    float after[kAhead] = {};
    KITH_UNROLL
    for (int a = 0; a < kAhead; ++a) {
      const int64_t col = first + a * kCanonicalLanes;
      if (col >= task.cols) continue;
      before[a] = from[col];
      after[a] = moves ? static_cast<float>(mean(col) * inverse) : before[a];
    }
    KITH_UNROLL
    for (int a = 0; a < kAhead; ++a) {
      const int64_t col = first + a * kCanonicalLanes;
      if (col >= task.cols) continue;
      if (moves) squared = canonical_step<KeyKind::squared_l2>(squared, after[a], before[a], 0, 0);
      out[col] = after[a];
    }
  }
  squared = tree(squared, threads);
  if (lane == 0) task.squared_moves[centre] = squared;
}

}  // namespace

void launch_move_centres(const MoveTask& task, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(divide_up(task.clusters * kCanonicalLanes, kThreads));
  move_kernel<<<blocks, kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("move_kernel");
}

}  // namespace kith
