// Sums and extremes over a warp or a block: the Group of key_cut.hpp.
#pragma once

#include "kernels/select/device_warp_cuda.hpp"

#include <cstdint>

namespace kith {

struct WarpGroup {
  __device__ static constexpr int threads() { return 32; }
  __device__ int sum(int value) const { return __reduce_add_sync(kAllLanes, value); }
  __device__ uint32_t min(uint32_t value) const { return __reduce_min_sync(kAllLanes, value); }
  __device__ uint32_t max(uint32_t value) const { return __reduce_max_sync(kAllLanes, value); }
};

// Two sets of slots alternate, so each call needs one barrier only: a thread that writes a set again has passed the
// barrier of the call in between, and so have all threads that read the set.
template <int kThreads>
class BlockGroup {
 public:
  static constexpr int kWarps = kThreads / 32;
  struct Shared {
    uint32_t slots[2][kWarps];
  };

  __device__ static constexpr int threads() { return kThreads; }
  __device__ explicit BlockGroup(Shared& shared) : shared_(shared) {}

  __device__ int sum(int value) {
    const int slot = static_cast<int>(gather(static_cast<uint32_t>(warp_.sum(value)), 0));
    return warp_.sum(slot);
  }
  __device__ uint32_t min(uint32_t value) { return warp_.min(gather(warp_.min(value), 0xFFFFFFFFu)); }
  __device__ uint32_t max(uint32_t value) { return warp_.max(gather(warp_.max(value), 0)); }

 private:
  // Lane i gets warp i's value, lanes without a warp `rest`.
  __device__ uint32_t gather(uint32_t value, uint32_t rest) {
    uint32_t* const slots = shared_.slots[turn_];
    turn_ ^= 1;
    if (lane_index() == 0) slots[threadIdx.x / 32] = value;
    __syncthreads();
    return lane_index() < kWarps ? slots[lane_index()] : rest;
  }

  Shared& shared_;
  WarpGroup warp_;
  int turn_ = 0;
};

}  // namespace kith
