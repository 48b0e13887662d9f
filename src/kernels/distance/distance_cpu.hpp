// Distances from one query to rows as they lie in memory, on the CPU. Rows are f32 or u8 in host memory; the query is
// f32, widened by the caller.
#pragma once

#include <kith/view.hpp>

#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

struct CanonicalQuery {
  const float* values = nullptr;
  double inverse_norm = 0;  // for cosine
};

// The keys that are reported (canonical.hpp) of the rows listed.
void canonical_keys_cpu(KeyKind kind, const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows,
                        int64_t count, float* keys);

// The canonical sum of squares of one f32 row.
double canonical_squared_norm_cpu(const float* row, int64_t cols);

// Fast f32 sums for every row of `base`, in no promised order of operations, within error_bound.hpp of the truth:
// l2 and squared_l2 give sum (q - x)^2; the others give sum q x and, in squared_norms, sum x x. A row with a NaN or an
// infinity gives a value that is not finite.
void scan_rows_cpu(KeyKind kind, const float* query, const MatrixView& base, float* values, float* squared_norms);

// Row i of `view` as f32.
void widen_row(const MatrixView& view, int64_t i, float* out);

// Whether every value of row i is finite.
bool row_is_finite(const MatrixView& view, int64_t i);

}  // namespace kith
