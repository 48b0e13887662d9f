// All distances on a GPU: the direct engine's keys, tile by tile.
#pragma once

#include <kith/view.hpp>

#include "exact/knn_loop.hpp"

namespace kith {

// Into f32 memory of the host or of the plan's device; complete when it returns. The plan is one of the direct engine.
void pairwise_cuda(const KnnProblem& problem, const PlannedKnn& planned, const MatrixView& x, const MatrixView& y,
                   const MutableMatrixView& out);

}  // namespace kith
