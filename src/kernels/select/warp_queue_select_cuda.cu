// WarpSelect over rows with columns as payload, for k up to 2,048.
#include "kernels/select/warp_queue_kernel_cuda.hpp"

namespace kith {

void launch_warp_queue_select(const SelectCall& call, cudaStream_t stream) {
  launch_warp_queue_for_k<uint64_t>(call, stream);
}

}  // namespace kith
