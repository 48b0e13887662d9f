// WarpSelect over rows with 64-bit ids as payload, for k up to 1,024.
#include "kernels/select/warp_queue_kernel_cuda.hpp"

namespace kith {

void launch_warp_queue_wide_select(const SelectCall& call, cudaStream_t stream) {
  launch_warp_queue_for_k<WideEntry>(call, stream);
}

}  // namespace kith
