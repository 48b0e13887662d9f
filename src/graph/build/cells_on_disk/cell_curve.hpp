// An order of cells that keeps near cells together: the centres are split in half recursively, along the line between
// two that are far apart. Blocks of consecutive cells then contain most of their pairs.
//
// Cost: cells x log2(cells) x columns. Any order gives the same graph.
#pragma once

#include <kith/view.hpp>

#include <cstdint>
#include <vector>

namespace kith {

// Returns the cell at each place of the curve. Centres are f32.
std::vector<uint32_t> cell_curve(const MatrixView& centres);

}  // namespace kith
