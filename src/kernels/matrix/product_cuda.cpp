#include "kernels/matrix/product_cuda.hpp"

namespace kith {

void launch_product_minima(ProductEngine engine, const ProductOperands& operands, const ProductSchedule& schedule,
                           const ProductMinima& minima, cudaStream_t stream) {
  if (engine == ProductEngine::wgmma) return launch_wgmma(operands, schedule, minima, stream);
  launch_mma(operands, schedule, minima, stream);
}

void launch_product_candidates(ProductEngine engine, const ProductOperands& operands, const ProductSchedule& schedule,
                               const ProductCandidates& candidates, cudaStream_t stream) {
  if (engine == ProductEngine::wgmma) return launch_wgmma(operands, schedule, candidates, stream);
  launch_mma(operands, schedule, candidates, stream);
}

void launch_product_parts(ProductEngine engine, const ProductOperands& operands, const ProductSchedule& schedule,
                          const ProductParts& parts, cudaStream_t stream) {
  if (engine == ProductEngine::wgmma) return launch_wgmma(operands, schedule, parts, stream);
  launch_mma(operands, schedule, parts, stream);
}

void launch_product_marks(ProductEngine engine, const ProductOperands& operands, const ProductSchedule& schedule,
                          const ProductMarks& marks, cudaStream_t stream) {
  if (engine == ProductEngine::wgmma) return launch_wgmma(operands, schedule, marks, stream);
  launch_mma(operands, schedule, marks, stream);
}

void launch_product_nearest(ProductEngine engine, const ProductOperands& operands, const ProductSchedule& schedule,
                            const ProductNearest& nearest, cudaStream_t stream) {
  if (engine == ProductEngine::wgmma) return launch_wgmma(operands, schedule, nearest, stream);
  launch_mma(operands, schedule, nearest, stream);
}

}  // namespace kith
