// All pairs of some queries and rows whose canonical keys are wanted.
#pragma once

#include <kith/view.hpp>

#include "kernels/distance/distance_cpu.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

struct CanonicalBlock {
  KeyKind kind = KeyKind::squared_l2;
  const CanonicalQuery* queries = nullptr;
  int64_t query_count = 0;
  const MatrixView& rows;
  float* keys = nullptr;  // of query q and row i at q * stride + i
  int64_t stride = 0;
};

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

// The largest differences of all pairs of some queries and rows, on the CPU: the canonical keys of linf (canonical.hpp).
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
