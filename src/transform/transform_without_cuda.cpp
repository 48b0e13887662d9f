// Replaces the GPU's transforms and training in builds without CUDA.
#include "core/dispatch.hpp"
#include "transform/principal_axes.hpp"
#include "transform/rotation_steps.hpp"
#include "transform/transform_cuda.hpp"

namespace kith {

void transform_cuda(const std::vector<TransformRun>&, const MatrixView&, const MutableMatrixView&, int,
                    const Resources&) {
  throw_no_cuda();
}

PrincipalAxes principal_axes_cuda(const TrainingRows&, int, const Resources&) { throw_no_cuda(); }

void count_principal_axes_cuda(int64_t, int64_t, int, const Resources&) { throw_no_cuda(); }

std::unique_ptr<RotationSteps> make_rotation_steps_cuda(const RotationShape&, int, const Resources&) {
  throw_no_cuda();
}

}  // namespace kith
