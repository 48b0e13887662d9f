// The canonical key of a candidate, computed by four threads: four lanes of the canonical sum each.
#pragma once

#include "cuda/device_core.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/distance/row_threads_cuda.hpp"
#include "kernels/distance/stored_four_cuda.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace kith {

// The canonical sum of one row, right in the first of the four threads that share it: a thread has four neighbouring
// lanes. `query` has been widened and, for cosine, scaled, and is zero up to a multiple of 16 columns.
template <bool kProduct, typename X>
__device__ inline double row_sum(const double* query, const X* row, int64_t cols, bool aligned, double inverse_norm) {
  constexpr int kLanes = kRowThreadLanes;
  constexpr int kAhead = 4;  // loads that are under way at a time
  const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
  const bool whole = aligned && cols % kLanes == 0;
  double lanes[kLanes] = {};
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
        if constexpr (kProduct) {
          lanes[i] = fma(query[first + i], x, lanes[i]);
        } else {
          const double difference = query[first + i] - x * inverse_norm;  // exact where the norm plays no part
          lanes[i] = fma(difference, difference, lanes[i]);
        }
      }
    }
  }
  return join_row_threads(lanes, row_threads());
}

// The same of bytes, all sixteen bytes of a thread in one load. The canonical sum of whole numbers is exact, so theirs
// is the same whatever the order. Rows lie at multiples of 16 bytes and have a multiple of 16 columns.
template <bool kProduct, typename X>
__device__ inline double byte_row_sum(const uint32_t* query, const X* row, int64_t cols) {
  using Word = std::conditional_t<std::is_signed_v<X>, int, unsigned>;  // what the four bytes are multiplied as
  const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
  int64_t sum = 0;
  for (int64_t first = 16 * thread; first < cols; first += 16 * kRowThreads) {
    const auto unit = load_vector<uint4>(row + first);
    const auto with = load_vector<uint4>(query + first / 4);
    const uint32_t x[4] = {unit.x, unit.y, unit.z, unit.w};
    const uint32_t q[4] = {with.x, with.y, with.z, with.w};
    Word products = 0;
    Word squares = 0;
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const auto a = static_cast<Word>(x[i]);
      const auto b = static_cast<Word>(q[i]);
      products = __dp4a(a, b, products);
      if (!kProduct) squares = __dp4a(a, a, __dp4a(b, b, squares));
    }
    sum +=
        kProduct ? static_cast<int64_t>(products) : static_cast<int64_t>(squares) - 2 * static_cast<int64_t>(products);
  }
  const unsigned threads = row_threads();
  KITH_UNROLL
  for (int apart = kRowThreads / 2; apart > 0; apart /= 2) {
    sum += __shfl_down_sync(threads, sum, static_cast<unsigned>(apart), kRowThreads);
  }
  return static_cast<double>(sum);
}

__device__ inline float candidate_key(KeyKind kind, double sum, double inverse_q, double inverse_x) {
  switch (kind) {
    case KeyKind::inner_product: return canonical_key<KeyKind::inner_product>(sum, 0, 0);
    case KeyKind::cosine: return canonical_key<KeyKind::cosine>(sum, inverse_q, inverse_x);
    case KeyKind::l2: return canonical_key<KeyKind::l2>(sum, 0, 0);
    default: return canonical_key<KeyKind::squared_l2>(sum, 0, 0);
  }
}

__device__ inline void widen_query(const DeviceRowsView& queries, int64_t query, int64_t cols, double inverse,
                                   double* out) {
  const auto* row = static_cast<const std::byte*>(queries.data) + query * queries.stride * stored_bytes(queries.dtype);
  const int64_t padded = rerank_bytes(0, cols) / static_cast<int64_t>(sizeof(double));
  for (int64_t col = threadIdx.x; col < padded; col += blockDim.x) {
    out[col] = (col < cols ? stored_value(row, queries.dtype, col) : 0.0) * inverse;
  }
}

}  // namespace kith
