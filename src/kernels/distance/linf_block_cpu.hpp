// The largest differences of all pairs of some queries and rows, on the CPU: the canonical keys of linf (canonical.hpp).
//
// They need no float64. Where the difference of two f32 values is no double, one is below 2^-29 of the other, and both
// roundings give the larger one; else the double is the difference itself, and rounding it to f32 is what an f32
// subtraction does. The largest of rounded numbers is the largest number rounded. Magnitudes are ordered as their bits
// are, with every NaN at the far end.
//
// Rows lie side by side in a panel, a column of all after the other; a tile of some queries and vectors of rows lies in
// registers. Cost: two operations for each pair and column, in f32.
#pragma once

#include "kernels/distance/canonical_block.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

int64_t linf_block_bytes(int64_t cols);

void linf_block_cpu(const CanonicalBlock& block, std::byte* memory);

}  // namespace kith
