// The canonical key of two rows of one collection on a GPU, computed by four neighbouring threads, four lanes of the
// canonical sum each. Rows lie anywhere in the device's memory and are read as they are stored.
#pragma once

#include "graph/pairs/pair_key_rows.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/row_threads_cuda.hpp"
#include "kernels/distance/stored_four_cuda.hpp"

#include <cstdint>

namespace kith {

namespace pair_key_detail {

template <KeyKind kKind>
__device__ inline double join_lanes(double (&lanes)[kRowThreadLanes]) {
  const unsigned threads = row_threads();
  KITH_UNROLL
  for (int apart = kRowThreads / 2; apart > 0; apart /= 2) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) {
      lanes[i] = canonical_join<kKind>(
          lanes[i], __shfl_down_sync(threads, lanes[i], static_cast<unsigned>(apart), kRowThreads));
    }
  }
  lanes[0] = canonical_join<kKind>(lanes[0], lanes[2]);
  lanes[1] = canonical_join<kKind>(lanes[1], lanes[3]);
  return canonical_join<kKind>(lanes[0], lanes[1]);
}

// What lies past the last column is zero, and adds nothing.
template <KeyKind kKind, bool kFloats>
__device__ inline double sum_of(const PairKeyRows& task, uint32_t a, uint32_t b, double inverse_a, double inverse_b) {
  constexpr int kAhead = 2;  // loads of each row that are under way at a time
  const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
  const DType dtype = kFloats ? DType::f32 : task.rows.dtype;
  const bool aligned = fours_aligned(task.rows);
  const std::byte* const first_row = row_bytes_at(task.rows, a);
  const std::byte* const second_row = row_bytes_at(task.rows, b);
  double lanes[kRowThreadLanes] = {};
  for (int64_t start = kRowThreadLanes * thread; start < task.cols; start += kAhead * kCanonicalLanes) {
    StoredFour x[kAhead] = {};
    StoredFour y[kAhead] = {};
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      const int64_t first = start + ahead * kCanonicalLanes;
      if (first >= task.cols) break;
      x[ahead] = fetch_four(first_row, dtype, first, task.cols, aligned);
      y[ahead] = fetch_four(second_row, dtype, first, task.cols, aligned);
    }
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      if (start + ahead * kCanonicalLanes >= task.cols) break;
      double p[4];
      double q[4];
      widen_four(x[ahead], dtype, p);
      widen_four(y[ahead], dtype, q);
      KITH_UNROLL
      for (int i = 0; i < kRowThreadLanes; ++i) {
        lanes[i] = canonical_step<kKind>(lanes[i], p[i], q[i], inverse_a, inverse_b);
      }
    }
  }
  return join_lanes<kKind>(lanes);
}

// The differences' sum is the same for l2 and squared_l2; kKind is one of them for both.
template <KeyKind kKind>
__device__ inline float key_of(const PairKeyRows& task, uint32_t a, uint32_t b) {
  double inverse_a = 0;
  double inverse_b = 0;
  if constexpr (kKind == KeyKind::cosine) {
    inverse_a = task.rows.inverse_norms[a];
    inverse_b = task.rows.inverse_norms[b];
  }
  double sum = 0;
  if constexpr (is_product(kKind)) {
    sum = task.rows.dtype == DType::f32 ? sum_of<kKind, true>(task, a, b, inverse_a, inverse_b)
                                        : sum_of<kKind, false>(task, a, b, inverse_a, inverse_b);
  } else {
    sum = sum_of<kKind, false>(task, a, b, inverse_a, inverse_b);
  }
  if (kKind == KeyKind::squared_l2 && task.kind == KeyKind::l2) return canonical_key<KeyKind::l2>(sum, 0, 0);
  return canonical_key<kKind>(sum, inverse_a, inverse_b);
}

}  // namespace pair_key_detail

// Right in the first of the four threads, which all call it with the same rows. The same whichever comes first.
__device__ __noinline__ inline float pair_key(const PairKeyRows& task, uint32_t a, uint32_t b) {
  using namespace pair_key_detail;
  switch (task.kind) {
    case KeyKind::inner_product: return key_of<KeyKind::inner_product>(task, a, b);
    case KeyKind::cosine: return key_of<KeyKind::cosine>(task, a, b);
    case KeyKind::l1: return key_of<KeyKind::l1>(task, a, b);
    case KeyKind::linf: return key_of<KeyKind::linf>(task, a, b);
    case KeyKind::chi_square: return key_of<KeyKind::chi_square>(task, a, b);
    case KeyKind::hamming: return key_of<KeyKind::hamming>(task, a, b);
    default: return key_of<KeyKind::squared_l2>(task, a, b);
  }
}

}  // namespace kith
