// How the centres of cells are learned: the same on every device.
#pragma once

#include <kith/kmeans.hpp>

#include "graph/cells/cell_params.hpp"

#include <cstdint>

namespace kith {

inline constexpr uint64_t kCellSampleStream = 0xCE115;  // no other draw uses it
inline constexpr int64_t kSampleRowsPerCell = 48;

inline KMeansParams cell_training(const CellParams& params) {
  constexpr int64_t kIterations = 6;
  KMeansParams wish;
  wish.clusters = params.cells;
  wish.iterations = kIterations;
  wish.init = KMeansInit::random;
  wish.seed = params.seed;
  wish.compute_labels = false;
  wish.check_finite = false;
  return wish;
}

}  // namespace kith
