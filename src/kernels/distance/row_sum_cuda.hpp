// Canonical sums of a row and a few queries, by the four threads that share the row, for rows that are read once.
// Queries are doubles in shared memory.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/distance/row_threads_cuda.hpp"
#include "rows/device_rows.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// Doubles per query, zero-padded to a multiple of the lanes.
KITH_HOST_DEVICE inline int64_t padded_cols(int64_t cols) {
  return (cols + kCanonicalLanes - 1) / kCanonicalLanes * kCanonicalLanes;
}

// Widens and scales a query by its inverse norm (1 unless cosine). Called by all threads of a block.
__device__ inline void widen_query(const DeviceRowsView& queries, int64_t query, int64_t cols, double inverse,
                                   double* out) {
  const auto* row = static_cast<const std::byte*>(queries.data) + query * queries.stride * stored_bytes(queries.dtype);
  for (int64_t col = threadIdx.x; col < padded_cols(cols); col += blockDim.x) {
    out[col] = (col < cols ? stored_value(row, queries.dtype, col) : 0.0) * inverse;
  }
}

// With each of kQueries widened queries, one after the other; right in the first of the four threads, each of which has
// four neighbouring lanes. kAhead: loads that are under way at a time.
template <bool kProduct, int kQueries, int kAhead = 4, typename X>
__device__ inline void row_sums(const double* queries, const X* row, int64_t cols, bool aligned, double inverse_norm,
                                double (&sums)[kQueries]) {
  constexpr int kLanes = kRowThreadLanes;
  const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
  const bool whole = aligned && cols % kLanes == 0;
  const int64_t apart = padded_cols(cols);
  double lanes[kQueries][kLanes] = {};
  for (int64_t start = kLanes * thread; start < cols; start += kAhead * kCanonicalLanes) {
    Four<X> fours[kAhead] = {};
    if (whole) {
      KITH_UNROLL
      for (int ahead = 0; ahead < kAhead; ++ahead) {
        const int64_t first = start + ahead * kCanonicalLanes;
        if (first < cols) fours[ahead] = load_vector<Four<X>>(row + first);
      }
    } else {
      KITH_UNROLL
      for (int ahead = 0; ahead < kAhead; ++ahead) {
        fours[ahead] = load_four(row, start + ahead * kCanonicalLanes, cols, false);
      }
    }
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      const int64_t first = start + ahead * kCanonicalLanes;
      if (first >= cols) break;
      KITH_UNROLL
      for (int i = 0; i < kLanes; ++i) {
        const double x = static_cast<double>(fours[ahead].values[i]);
        KITH_UNROLL
        for (int q = 0; q < kQueries; ++q) {
          const double value = queries[q * apart + first + i];
          if constexpr (kProduct) {
            lanes[q][i] = fma(value, x, lanes[q][i]);
          } else {
            const double difference = value - x * inverse_norm;  // exact where the norm plays no part
            lanes[q][i] = fma(difference, difference, lanes[q][i]);
          }
        }
      }
    }
  }
  KITH_UNROLL
  for (int q = 0; q < kQueries; ++q) sums[q] = join_row_threads(lanes[q], row_threads());
}

template <bool kProduct, typename X>
__device__ inline double row_sum(const double* query, const X* row, int64_t cols, bool aligned, double inverse_norm) {
  double sums[1];
  row_sums<kProduct, 1>(query, row, cols, aligned, inverse_norm, sums);
  return sums[0];
}

}  // namespace kith
