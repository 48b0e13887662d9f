// All distances on a GPU: the direct engine's keys, tile by tile.
#pragma once

#include <kith/view.hpp>

#include "exact/knn_plan.hpp"

#include <string_view>

namespace kith {

// Their names in errors and progress.
struct PairwiseNames {
  std::string_view x = "x";
  std::string_view y = "y";
  std::string_view stage = "distances";
};

// Writes f32 to host memory or the plan's device; complete when it returns. The plan must be of the direct engine.
void pairwise_cuda(const SearchTask& task, const PlannedKnn& planned, const MatrixView& x, const MatrixView& y,
                   const MutableMatrixView& out, const PairwiseNames& names = {});

}  // namespace kith
