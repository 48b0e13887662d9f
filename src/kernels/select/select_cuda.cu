// A block for each query runs the cores of select_block_cuda.hpp and sort_block_cuda.hpp.
#include "kernels/select/select_cuda.hpp"

#include "cuda/error.hpp"
#include "kernels/select/select_block_cuda.hpp"
#include "kernels/select/sort_block_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarpThreads = 32;
constexpr int kWarps = kThreads / kWarpThreads;

struct SelectShared {
  uint32_t histogram[kRadixBins];
  int less[kWarps];
  int equal[kWarps];
};

class CudaBlock {
 public:
  __device__ explicit CudaBlock(SelectShared& shared) : shared_(shared) {}

  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return kThreads; }
  __device__ void sync() const { __syncthreads(); }
  __device__ bool any(bool flag) const { return __syncthreads_or(flag) != 0; }
  __device__ uint32_t* histogram() const { return shared_.histogram; }
  __device__ void count(uint32_t bin) const { atomicAdd(&shared_.histogram[bin], 1u); }

  // Every thread of the block calls it.
  __device__ FlagRanks rank(bool less, bool equal) const {
    constexpr unsigned kAll = 0xFFFFFFFFu;
    const unsigned less_mask = __ballot_sync(kAll, less);
    const unsigned equal_mask = __ballot_sync(kAll, equal);
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
    __syncthreads();  // the counts have been read and may be written again
    return ranks;
  }

 private:
  SelectShared& shared_;
};

__global__ void __launch_bounds__(kThreads) select_kernel(DeviceLists lists, DeviceKeyTile tile, int64_t have) {
  __shared__ SelectShared shared;
  const int64_t query = blockIdx.x;
  CudaBlock block(shared);
  const SelectTask task{lists.neighbors + query * lists.k,
                        lists.bounds + query,
                        tile.keys + query * tile.stride,
                        tile.rows,
                        have,
                        lists.k,
                        static_cast<uint32_t>(tile.first_row)};
  BlockSelector<CudaBlock>(block, task).run();
}

__global__ void __launch_bounds__(kThreads) sort_kernel(DeviceLists lists, int64_t have) {
  __shared__ SelectShared shared;
  CudaBlock block(shared);
  sort_block(block, lists.neighbors + blockIdx.x * lists.k, have);
}

}  // namespace

void launch_select(const DeviceLists& lists, const DeviceKeyTile& tile, int64_t rows_seen, cudaStream_t stream) {
  if (lists.queries == 0 || tile.rows == 0) return;
  select_kernel<<<static_cast<unsigned>(lists.queries), kThreads, 0, stream>>>(lists, tile,
                                                                               std::min(rows_seen, lists.k));
  KITH_CUDA_CHECK_LAUNCH("select_kernel");
}

void launch_sort(const DeviceLists& lists, int64_t rows_seen, cudaStream_t stream) {
  if (lists.queries == 0 || rows_seen == 0) return;
  sort_kernel<<<static_cast<unsigned>(lists.queries), kThreads, 0, stream>>>(lists, std::min(rows_seen, lists.k));
  KITH_CUDA_CHECK_LAUNCH("sort_kernel");
}

}  // namespace kith
