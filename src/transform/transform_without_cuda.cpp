// Stands in for what transforms rows on a GPU in a build without CUDA.
#include "core/dispatch.hpp"
#include "transform/transform_cuda.hpp"

namespace kith {

void transform_cuda(const std::vector<TransformRun>&, const MatrixView&, const MutableMatrixView&, int,
                    const Resources&) {
  throw_no_cuda();
}

}  // namespace kith
