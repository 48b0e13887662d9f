// The distances that are reported, from one query to rows as they are stored in host memory, on the CPU. The query is
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

// Canonical keys (canonical.hpp) of the listed rows.
void canonical_keys_cpu(KeyKind kind, const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows,
                        int64_t count, float* keys);

// Canonical sums of q x, in float64, for `count` consecutive f32 rows.
void canonical_products_cpu(const float* query, const float* rows, int64_t count, int64_t cols, double* products);

// 1 / |x| of each row, 0 for a zero vector (canonical_inverse_norm).
void canonical_inverse_norms_cpu(const MatrixView& rows, double* inverses);

// The canonical sum of squares of one f32 row.
double canonical_squared_norm_cpu(const float* row, int64_t cols);

}  // namespace kith
