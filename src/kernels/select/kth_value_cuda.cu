#include "kernels/select/kth_value_cuda.hpp"

#include <kith/error.hpp>

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
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
  const float* const row = task.values + static_cast<int64_t>(blockIdx.x) * task.cols + threadIdx.x;
  const int count = static_cast<int>(task.cols) - static_cast<int>(threadIdx.x);
  if (task.k > task.cols) {
    if (threadIdx.x == 0) task.kth[blockIdx.x] = HUGE_VALF;
    return;
  }
  // All loads first: a load beside its use would wait for it before the next.
  float values[kHeld];
  KITH_UNROLL
  for (int i = 0; i < kHeld; ++i) {
    values[i] = NAN;
    if (i * kThreads < count) values[i] = row[i * kThreads];
  }
  uint32_t keys[kHeld];
  KITH_UNROLL
  for (int i = 0; i < kHeld; ++i) keys[i] = ordered_key(values[i]);
  const int k = static_cast<int>(task.k);
  const uint32_t key = find_cut(group, keys, AllRows(), 0, {k, k + k / kSlack}).key;
  if (threadIdx.x == 0) task.kth[blockIdx.x] = key == kNanKey ? HUGE_VALF : key_of_ordered(key);
}

template <int kThreads, int kHeld>
void launch(const KthTask& task, cudaStream_t stream) {
  kth_kernel<kThreads, kHeld><<<static_cast<unsigned>(task.rows), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("kth_kernel");
}

}  // namespace

void launch_kth_value(const KthTask& task, cudaStream_t stream) {
  if (task.cols > kKthLongestRow) {
    throw InvalidArgument("a row of " + std::to_string(task.cols) + " values does not fit a block's registers; the " +
                          "longest have " + std::to_string(kKthLongestRow));
  }
  if (task.rows == 0) return;
  if (task.cols <= 256 * kFewItems) return launch<256, kFewItems>(task, stream);
  if (task.cols <= 256 * kItems) return launch<256, kItems>(task, stream);
  if (task.cols <= 512 * kItems) return launch<512, kItems>(task, stream);
  static_assert(1024 * kItems == kKthLongestRow);
  launch<1024, kItems>(task, stream);
}

}  // namespace kith
