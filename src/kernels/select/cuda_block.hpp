// The GPU block that select_block_cuda.hpp and sort_block_cuda.hpp are instantiated with.
#pragma once

#include "cuda/warp.hpp"
#include "kernels/select/select_block_cuda.hpp"

#include <cstdint>

namespace kith {

template <int kThreads>
class CudaBlock {
 public:
  static constexpr int kWarpThreads = 32;
  static constexpr int kWarps = kThreads / kWarpThreads;
  struct Shared {
    uint32_t histogram[kRadixBins];
    int less[kWarps];
    int equal[kWarps];
  };

  __device__ explicit CudaBlock(Shared& shared) : shared_(shared) {}

  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return kThreads; }
  __device__ void sync() const { __syncthreads(); }
  __device__ bool any(bool flag) const { return __syncthreads_or(flag) != 0; }
  __device__ uint32_t* histogram() const { return shared_.histogram; }
  __device__ void count(uint32_t bin) const { atomicAdd(&shared_.histogram[bin], 1u); }

  // Called by every thread of the block.
  __device__ FlagRanks rank(bool less, bool equal) const {
    const unsigned less_mask = __ballot_sync(kAllLanes, less);
    const unsigned equal_mask = __ballot_sync(kAllLanes, equal);
    const int warp = thread() / kWarpThreads;
    const int lane = thread() % kWarpThreads;
    if (lane == 0) {
      shared_.less[warp] = __popc(less_mask);
      shared_.equal[warp] = __popc(equal_mask);
    }
    __syncthreads();
    const unsigned lanes_before = (1u << lane) - 1u;
    FlagRanks ranks{__popc(less_mask & lanes_before), __popc(equal_mask & lanes_before), 0, 0};
    for (int w = 0; w < kWarps; ++w) {
      ranks.less_total += shared_.less[w];
      ranks.equal_total += shared_.equal[w];
      if (w < warp) {
        ranks.less_before += shared_.less[w];
        ranks.equal_before += shared_.equal[w];
      }
    }
    __syncthreads();  // the counts may be overwritten from here on
    return ranks;
  }

 private:
  Shared& shared_;
};

}  // namespace kith
