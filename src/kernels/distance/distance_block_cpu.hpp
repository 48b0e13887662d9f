// The distances that are reported, of all pairs of some queries and rows, on the CPU: the same bits as
// canonical_keys_cpu() at the processor's float64 rate.
//
// Rows and queries are widened to doubles once for many pairs, and put side by side: a tile of some queries and some
// vectors of rows lies in registers, and a column is one load for each vector of rows and a broadcast for each query.
// The 16 lanes of a canonical sum are summed one after the other, so that a tile needs one register for a pair of a
// query and a vector of rows, and the tree that joins the lanes needs no shuffles. Lanes without columns are left out,
// which leaves short rows nothing to pay for. Rows of up to 16 columns have a way of their own
// (few_columns_block_cpu.cpp), as the largest difference has (linf_block_cpu.cpp).
//
// Where the key is a sum of squared differences, |q|^2 + |x|^2 - 2 q x in float64 takes half the operations. It is not
// the canonical sum, but an interval around it that rounds to one f32 shows what the canonical sum rounds to. Tiles in
// which some interval does not are summed again in lanes.
//
// Cost: up to two operations for each pair and column; up to 1.2 MB of scratch.
#pragma once

#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "kernels/distance/canonical_block.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// What a thread needs, aligned to 64 bytes.
int64_t canonical_block_bytes(int64_t cols);

// Whether so many queries make use of it.
bool block_packs(KeyKind kind, int64_t queries, int64_t cols);

// Without scratch, and where it is of no use, row by row.
void canonical_block_cpu(const CanonicalBlock& block, std::byte* scratch);

// The pairs whose keys a scan computes at a time, and their memory: the keys, after the scratch for computing them.
inline constexpr int64_t kDenseRows = 512;
inline constexpr int64_t kDenseQueries = 96;
inline int64_t dense_block_bytes(int64_t cols) {
  return canonical_block_bytes(cols) + array_bytes<float>(kDenseRows * kDenseQueries);
}

}  // namespace kith
