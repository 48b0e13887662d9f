#include "kernels/matrix/knn_windows_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/select/device_group_cuda.hpp"
#include "kernels/select/key_cut.hpp"

#include <cmath>
#include <cstdint>
#include <string>

namespace kith {
namespace {

// The window that make(problem, query, rows) gives of what was measured, with its threshold written. Nothing is sure
// where it says so.
template <typename Make>
__device__ CandidateWindow window_of(const WindowTask& task, int64_t query, const Make& make) {
  const BaseBounds base = *task.base_bounds;
  const MeasuredWindow measured =
      measured_window({task.kind, task.type == OperandType::bytes, task.cols}, base, task.query_bounds[query]);
  CandidateWindow window = make(measured.problem, measured.query, base.rows);
  window.sure = window.sure && measured.sure;
  task.thresholds[query] = window.sure ? window.threshold : -HUGE_VALF;
  return window;
}

// Writes the threshold and the limit of keys.
__device__ inline CandidateWindow write_knn_window(const KnnWindowTask& task, int64_t query, double kth) {
  const bool of_far_row = task.base_bounds->has_far != 0 && !(kth < far_floor(task.base_bounds->ordinary));
  const CandidateWindow window = window_of(task, query, [&](const auto&... bounds) {
    CandidateWindow found = candidate_window(bounds..., kth);
    found.sure = found.sure && !of_far_row;
    return found;
  });
  task.key_limits[query] = window.sure ? ordered_key(window.key_limit) : 0;
  if (task.row_counts != nullptr) task.row_counts[query] = 0;
  return window;
}

constexpr int kWindowThreads = 256;

__global__ void __launch_bounds__(kWindowThreads) knn_windows_kernel(KnnWindowTask task) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kWindowThreads + threadIdx.x;
  if (query >= task.queries) return;
  const float* const minima = task.minima + query * task.selected;
  const double kth = task.kth != nullptr ? task.kth[query] : task.k <= task.selected ? minima[task.k - 1] : HUGE_VAL;
  const CandidateWindow window = write_knn_window(task, query, kth);
  if (task.group_counts == nullptr) return;
  int count = 0;
  while (count < task.selected && minima[count] <= window.threshold) ++count;
  const bool all_there = count < task.selected || task.selected == task.groups;
  task.group_counts[query] = window.sure && all_there ? count : -1;
}

__global__ void __launch_bounds__(kWindowThreads) range_windows_kernel(RangeWindowTask task) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kWindowThreads + threadIdx.x;
  if (query >= task.queries) return;
  const float most = task.each == nullptr ? task.most : task.each[query];
  const CandidateWindow window =
      window_of(task, query, [&](const auto&... bounds) { return range_window(bounds..., most); });
  task.key_limits[query] = window.sure ? ordered_key(most) : 0;
}

constexpr int kWarpThreads = 32;
constexpr int kWarpsPerBlock = 8;  // where each has a query of its own
constexpr int kSlack = 64;         // one row in this many may pass beyond k, which saves the last halvings

// All equal values pass, so that no row number is looked at.
struct AllRows {
  __device__ int count(uint32_t, uint32_t) const { return 0; }
};

// A value that at least k of `count` do not exceed; +inf where there are fewer.
template <int kThreads, int kHeld, typename Group>
__device__ float kth_smallest(const float* row, int64_t count, int64_t k, Group& group) {
  if (k > count) return HUGE_VALF;
  const int thread = static_cast<int>(threadIdx.x) % kThreads;
  const int left = static_cast<int>(count) - thread;
  // All loads first: a load beside its use would wait for it before the next.
  float values[kHeld];
  KITH_UNROLL
  for (int i = 0; i < kHeld; ++i) {
    values[i] = NAN;
    if (i * kThreads < left) values[i] = row[thread + i * kThreads];
  }
  uint32_t keys[kHeld];
  KITH_UNROLL
  for (int i = 0; i < kHeld; ++i) keys[i] = ordered_key(values[i]);
  const int least = static_cast<int>(k);
  const uint32_t key = find_cut(group, keys, AllRows(), 0, {least, least + least / kSlack}).key;
  return key == kNanKey ? HUGE_VALF : key_of_ordered(key);
}

template <int kThreads, int kHeld>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads) kth_kernel(KthTask task) {
  __shared__ typename BlockGroup<kThreads>::Shared shared;
  BlockGroup<kThreads> group(shared);
  const float* const row = task.values + static_cast<int64_t>(blockIdx.x) * task.cols;
  const float kth = kth_smallest<kThreads, kHeld>(row, task.cols, task.k, group);
  if (threadIdx.x == 0) task.kth[blockIdx.x] = kth;
}

// A window takes a thread as long as its minimum a warp: the block's are computed side by side.
template <int kHeld>
__global__ void __launch_bounds__(kWarpThreads* kWarpsPerBlock) kth_windows_warps(KnnWindowTask task) {
  __shared__ float kth[kWarpsPerBlock];
  const int64_t first_query = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock;
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  ptx::wait_for_kernel_before();
  if (first_query + warp < task.queries) {
    WarpGroup group;
    const float* const minima = task.minima + (first_query + warp) * task.groups;
    const float found = kth_smallest<kWarpThreads, kHeld>(minima, task.groups, task.k, group);
    if (threadIdx.x % kWarpThreads == 0) kth[warp] = found;
  }
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kWarpsPerBlock && first_query + thread < task.queries) {
    (void)write_knn_window(task, first_query + thread, kth[thread]);
  }
}

template <int kThreads, int kHeld>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads) kth_windows_block(KnnWindowTask task) {
  __shared__ typename BlockGroup<kThreads>::Shared shared;
  BlockGroup<kThreads> group(shared);
  ptx::wait_for_kernel_before();
  const float* const minima = task.minima + static_cast<int64_t>(blockIdx.x) * task.groups;
  const float kth = kth_smallest<kThreads, kHeld>(minima, task.groups, task.k, group);
  if (threadIdx.x == 0) (void)write_knn_window(task, blockIdx.x, kth);
}

template <int kHeld>
void launch_warps(const KnnWindowTask& task, cudaStream_t stream) {
  const Grid grid = Grid::of(divide_up(task.queries, kWarpsPerBlock), kWarpThreads * kWarpsPerBlock);
  launch(kth_windows_warps<kHeld>, grid.chained(), stream, task);
}

template <int kThreads, int kHeld>
void launch_blocks(const KnnWindowTask& task, cudaStream_t stream) {
  launch(kth_windows_block<kThreads, kHeld>, Grid::of(task.queries, kThreads).chained(), stream, task);
}

constexpr int kMost = 32;  // values that a thread holds

void check_length(int64_t values) {
  if (values <= kKthLongestRow) return;
  throw InvalidArgument("a row of " + std::to_string(values) +
                        " values does not fit a block's registers; the longest " + "have " +
                        std::to_string(kKthLongestRow));
}

template <int kThreads, int kHeld>
void launch_kth(const KthTask& task, cudaStream_t stream) {
  launch(kth_kernel<kThreads, kHeld>, Grid::of(task.rows, kThreads), stream, task);
}

}  // namespace

void launch_kth_value(const KthTask& task, cudaStream_t stream) {
  constexpr int kFew = 8;  // of short rows
  check_length(task.cols);
  if (task.cols <= 256 * kFew) return launch_kth<256, kFew>(task, stream);
  if (task.cols <= 256 * kMost) return launch_kth<256, kMost>(task, stream);
  if (task.cols <= 512 * kMost) return launch_kth<512, kMost>(task, stream);
  launch_kth<1024, kMost>(task, stream);
}

void launch_knn_windows(const KnnWindowTask& task, cudaStream_t stream) {
  launch(knn_windows_kernel, Grid::over(task.queries, kWindowThreads), stream, task);
}

void launch_range_windows(const RangeWindowTask& task, cudaStream_t stream) {
  launch(range_windows_kernel, Grid::over(task.queries, kWindowThreads), stream, task);
}

void launch_kth_windows(const KnnWindowTask& task, cudaStream_t stream) {
  check_length(task.groups);
  if (task.groups <= kWarpThreads * 4) {
    launch_warps<4>(task, stream);
  } else if (task.groups <= kWarpThreads * 16) {
    launch_warps<16>(task, stream);
  } else if (task.groups <= kWarpThreads * kMost) {
    launch_warps<kMost>(task, stream);
  } else if (task.groups <= 128 * kMost) {
    launch_blocks<128, kMost>(task, stream);
  } else {
    static_assert(1024 * kMost == kKthLongestRow);
    launch_blocks<1024, kMost>(task, stream);
  }
}

}  // namespace kith
