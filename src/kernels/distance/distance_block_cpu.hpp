// Canonical distances of all pairs of some queries and rows on the CPU: the same bits as canonical_keys_cpu(), at the
// processor's float64 rate.
//
// Rows and queries are widened to doubles once for many pairs, and packed side by side: a tile of some queries and some
// vectors of rows is kept in registers, and a column takes one load per vector of rows and a broadcast per query. The
// 16 lanes of a canonical sum are summed one after the other, so that a tile needs one register per pair of a query and
// a vector of rows, and the tree that joins the lanes needs no shuffles. Lanes without columns are skipped, so short
// rows have no overhead. Rows of up to 16 columns, and the largest difference, have functions of their own
// (column_block_cpu.cpp).
//
// For keys that are sums of squared differences, |q|^2 + |x|^2 - 2 q x in float64 takes half the operations. It is not
// the canonical sum, but if all values within its error bound round to the same f32, so does the canonical sum. Tiles
// with an uncertain pair are summed again in lanes.
//
// Cost: up to two operations per pair and column; up to 1.2 MB of scratch.
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
  float* keys = nullptr;  // query q, row i: keys[q * stride + i]
  int64_t stride = 0;
};

// Scratch bytes per thread, to be aligned to 64 bytes.
int64_t canonical_block_bytes(int64_t cols);

// Whether it pays off for this number of queries.
bool block_packs(KeyKind kind, int64_t queries, int64_t cols);

// Goes row by row if there is no scratch or blocks would not help.
void canonical_block_cpu(const CanonicalBlock& block, std::byte* scratch);

// The pairs whose keys a scan computes at a time, and their memory: the keys, after the scratch for computing them.
inline constexpr int64_t kDenseRows = 512;
inline constexpr int64_t kDenseQueries = 96;
inline int64_t dense_block_bytes(int64_t cols) {
  return canonical_block_bytes(cols) + array_bytes<float>(kDenseRows * kDenseQueries);
}

// Canonical distances of all pairs of some queries and rows of up to 16 columns, on the CPU.
//
// A lane of the canonical sum has one column's term, so that only the tree adds. Rows are side by side in vectors: a
// column of 64 rows is widened to doubles once for all queries.
//
// Cost: two operations per pair and column, and one read of the rows. No memory beyond the stack.

// Whether this kind has a path for short vectors: sums of squares, products and magnitudes have.
constexpr bool has_short_sums(KeyKind kind) { return is_product(kind) || kind == KeyKind::l1; }

// For a single query on ARM, summing row by row beats transposing rows beyond this many columns.
#if defined(__aarch64__)
inline constexpr int64_t kMostColumnsOfOneQuery = 4;
#else
inline constexpr int64_t kMostColumnsOfOneQuery = kCanonicalLanes;
#endif

constexpr bool suits_few_columns(KeyKind kind, int64_t queries, int64_t cols) {
  return has_short_sums(kind) && cols > 0 && cols <= (queries == 1 ? kMostColumnsOfOneQuery : kCanonicalLanes);
}

// The same bits as canonical_keys_cpu(), for blocks that suit.
void few_columns_block_cpu(const CanonicalBlock& block);

// The largest differences of all pairs of some queries and rows, on the CPU: the canonical keys of linf
// (canonical.hpp).
//
// f32 is enough for them. If the difference of two f32 values is not exact in double, one is below 2^-29 of the other,
// and it rounds to the larger one in both; otherwise the double is exact, and rounding it to f32 equals an f32
// subtraction. The largest of rounded numbers is the largest number rounded. Magnitudes are ordered like their bits,
// with NaN above all others.
//
// Rows are side by side in a panel, column after column; a tile of some queries and vectors of rows is kept in
// registers. Cost: two f32 operations per pair and column.
int64_t linf_block_bytes(int64_t cols);

void linf_block_cpu(const CanonicalBlock& block, std::byte* memory);

}  // namespace kith
