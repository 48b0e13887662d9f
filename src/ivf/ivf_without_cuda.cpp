// Stands in for what searches lists on a GPU in a build without CUDA.
#include "core/dispatch.hpp"
#include "ivf/code_rows_cuda.hpp"
#include "ivf/gpu_lists.hpp"

namespace kith {

std::shared_ptr<const GpuLists> make_gpu_lists(int, const IvfModel&, const std::vector<Segment>&, const Resources&) {
  throw_no_cuda();
}

void code_rows_cuda(int, const IvfModel&, const MatrixView&, int32_t*, uint8_t*, const Resources&) { throw_no_cuda(); }

}  // namespace kith
