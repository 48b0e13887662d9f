#include "kernels/select/kth_value_cuda.hpp"

#include <kith/error.hpp>

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "kernels/select/device_group_cuda.hpp"
#include "kernels/select/key_cut.hpp"

#include <cmath>
#include <string>

namespace kith {
namespace {

constexpr int kItems = 32;    // values that a thread holds
constexpr int kFewItems = 8;  // of short rows
constexpr int kSlack = 64;    // one in so many may pass beyond k: the last halvings would only tell these apart

// Of equal values all pass, so that no row number is looked at.
struct AllRows {
  __device__ int count(uint32_t, uint32_t) const { return 0; }
};

template <int kThreads, int kHeld>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads) kth_kernel(KthTask task) {
  __shared__ typename BlockGroup<kThreads>::Shared shared;
  BlockGroup<kThreads> group(shared);
  const float* const row = task.values + static_cast<int64_t>(blockIdx.x) * task.cols;
  const int cols = static_cast<int>(task.cols);
  if (task.k > task.cols) {
    if (threadIdx.x == 0) task.kth[blockIdx.x] = HUGE_VALF;
    return;
  }
  uint32_t keys[kHeld];
  KITH_UNROLL
  for (int i = 0; i < kHeld; ++i) {
    const int place = i * kThreads + static_cast<int>(threadIdx.x);
    keys[i] = place < cols ? ordered_key(row[place]) : kNanKey;
  }
  const int k = static_cast<int>(task.k);
  const uint32_t key = find_cut(group, keys, AllRows(), 0, {k, k + k / kSlack}).key;
  if (threadIdx.x == 0) task.kth[blockIdx.x] = key == kNanKey ? HUGE_VALF : key_of_ordered(key);
}

template <int kThreads, int kHeld>
void launch_kth(const KthTask& task, cudaStream_t stream) {
  launch(kth_kernel<kThreads, kHeld>, Grid::of(task.rows, kThreads), stream, task);
}

}  // namespace

void launch_kth_value(const KthTask& task, cudaStream_t stream) {
  if (task.cols > kKthLongestRow) {
    throw InvalidArgument("a row of " + std::to_string(task.cols) + " values does not fit a block's registers; the " +
                          "longest have " + std::to_string(kKthLongestRow));
  }
  if (task.cols <= 256 * kFewItems) return launch_kth<256, kFewItems>(task, stream);
  if (task.cols <= 256 * kItems) return launch_kth<256, kItems>(task, stream);
  if (task.cols <= 512 * kItems) return launch_kth<512, kItems>(task, stream);
  static_assert(1024 * kItems == kKthLongestRow);
  launch_kth<1024, kItems>(task, stream);
}

}  // namespace kith
