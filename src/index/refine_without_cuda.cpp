// Replaces refinement on a GPU in a build without CUDA.
#include "core/dispatch.hpp"
#include "index/refine_gpu.hpp"

namespace kith {

std::shared_ptr<const CodecOnDevice> codec_on_gpu(int, const Codec&, const Resources&) { throw_no_cuda(); }

void refine_on_gpu(const GpuCodes&, Metric, const MatrixView&, const NeighborsView&, const NeighborsView&,
                   const Resources&) {
  throw_no_cuda();
}

}  // namespace kith
