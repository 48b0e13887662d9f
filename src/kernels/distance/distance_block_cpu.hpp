// The distances that are reported, of all pairs of some queries and rows, on the CPU: the same bits as
// canonical_keys_cpu() at the processor's float64 rate.
//
// Rows and queries are widened to doubles once for many pairs, and put side by side: a tile of some queries and some
// vectors of rows lies in registers, and a column is one load for each vector of rows and a broadcast for each query.
// The 16 lanes of a canonical sum are summed one after the other, so that a tile needs one register for a pair of a
// query and a vector of rows, and the tree that joins the lanes needs no shuffles. Lanes without columns are left out,
// which leaves short rows nothing to pay for. Rows of up to 16 columns have a way of their own,
// and the largest difference has one too (column_block_cpu.cpp).
//
// Where the key is a sum of squared differences, |q|^2 + |x|^2 - 2 q x in float64 takes half the operations. It is not
// the canonical sum, but an interval around it that rounds to one f32 shows what the canonical sum rounds to. Tiles in
// which some interval does not are summed again in lanes.
//
// Cost: up to two operations for each pair and column; up to 1.2 MB of scratch.
#pragma once

#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "kernels/distance/distance_cpu.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// All pairs of some queries and rows whose canonical keys are wanted.
struct CanonicalBlock {
  KeyKind kind = KeyKind::squared_l2;
  const CanonicalQuery* queries = nullptr;
  int64_t query_count = 0;
  const MatrixView& rows;
  float* keys = nullptr;  // of query q and row i at q * stride + i
  int64_t stride = 0;
};

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

// The distances that are reported, of all pairs of some queries and rows of up to 16 columns, on the CPU.
//
// A lane of the canonical sum is one column's term, so that nothing is added up but the tree. Rows lie side by side in
// vectors: a column of 64 of them is widened to doubles once for all queries.
//
// Cost: two operations for each pair and column, and one read of the rows. No memory but the stack.

// Sums of squares, products and magnitudes have a way for short vectors.
constexpr bool has_short_sums(KeyKind kind) { return is_product(kind) || kind == KeyKind::l1; }

// On ARM a single query's terms are summed sooner than rows of some columns are put side by side.
#if defined(__aarch64__)
inline constexpr int64_t kMostColumnsOfOneQuery = 4;
#else
inline constexpr int64_t kMostColumnsOfOneQuery = kCanonicalLanes;
#endif

constexpr bool suits_few_columns(KeyKind kind, int64_t queries, int64_t cols) {
  return has_short_sums(kind) && cols > 0 && cols <= (queries == 1 ? kMostColumnsOfOneQuery : kCanonicalLanes);
}

// The same bits as canonical_keys_cpu(), of what suits.
void few_columns_block_cpu(const CanonicalBlock& block);

// The largest differences of all pairs of some queries and rows, on the CPU: the canonical keys of linf
// (canonical.hpp).
//
// They need no float64. Where the difference of two f32 values is no double, one is below 2^-29 of the other, and both
// roundings give the larger one; else the double is the difference itself, and rounding it to f32 is what an f32
// subtraction does. The largest of rounded numbers is the largest number rounded. Magnitudes are ordered as their bits
// are, with every NaN at the far end.
//
// Rows lie side by side in a panel, a column of all after the other; a tile of some queries and vectors of rows lies in
// registers. Cost: two operations for each pair and column, in f32.
int64_t linf_block_bytes(int64_t cols);

void linf_block_cpu(const CanonicalBlock& block, std::byte* memory);

}  // namespace kith
