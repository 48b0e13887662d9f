// How the centres of cells are learned: the same on every device.
#pragma once

#include <kith/kmeans.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "graph/build/cells/cell_params.hpp"

#include <cstdint>

namespace kith {

inline constexpr uint64_t kCellSampleStream = 0xCE115;  // no other draw uses it
inline constexpr int64_t kSampleRowsPerCell = 48;

KMeansParams cell_training(const CellParams& params);
// From a sample of the rows, where it lies.
KMeans learn_cells(const MatrixView& sample, const CellParams& params, const Resources& resources);

}  // namespace kith
