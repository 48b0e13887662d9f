// An order of cells in which neighbours come near each other: the centres are halved again and again, along the line
// between two that lie far apart. Blocks of cells that follow one another then have most of their pairs inside.
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
