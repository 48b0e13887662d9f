// The distances that are reported, of all pairs of some queries and rows of up to 16 columns, on the CPU.
//
// A lane of the canonical sum is one column's term, so that nothing is added up but the tree. Rows lie side by side in
// vectors: a column of 64 of them is widened to doubles once for all queries.
//
// Cost: two operations for each pair and column, and one read of the rows. No memory but the stack.
#pragma once

#include "kernels/distance/canonical_block.hpp"

#include <cstdint>

namespace kith {

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

}  // namespace kith
