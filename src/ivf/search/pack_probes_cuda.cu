#include "ivf/search/pack_probes_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"

namespace kith {
namespace {

__global__ void pack_probes_kernel(const int64_t* lists, int64_t count, uint64_t* packed) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  packed[i] = lists[i] < 0 ? kPadding : pack_neighbor(0, static_cast<uint32_t>(lists[i]));
}

}  // namespace

void launch_pack_probes(const int64_t* lists, int64_t count, uint64_t* packed, cudaStream_t stream) {
  launch(pack_probes_kernel, Grid::over(count, 256), stream, lists, count, packed);
}

}  // namespace kith
