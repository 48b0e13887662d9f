// The canonical key of two rows of one collection on a GPU, computed by four neighbouring threads, four lanes of the
// canonical sum each. Rows lie anywhere in the device's memory and are read as they are stored.
//
// All threads of a warp compute keys together, and those that want none give any rows: shuffles among threads that are
// not known when it is compiled are done group by group, and were a quarter of a join's time.
#pragma once

#include "cuda/vector_access.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/distance/row_threads_cuda.hpp"

#include <cstdint>

namespace kith {

namespace pair_key_detail {

template <KeyKind kKind>
__device__ inline double join_lanes(double (&lanes)[kRowThreadLanes]) {
  KITH_UNROLL
  for (int apart = kRowThreads / 2; apart > 0; apart /= 2) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) {
      lanes[i] = canonical_join<kKind>(
          lanes[i], __shfl_down_sync(0xFFFFFFFFu, lanes[i], static_cast<unsigned>(apart), kRowThreads));
    }
  }
  lanes[0] = canonical_join<kKind>(lanes[0], lanes[2]);
  lanes[1] = canonical_join<kKind>(lanes[1], lanes[3]);
  return canonical_join<kKind>(lanes[0], lanes[1]);
}

template <KeyKind kKind>
__device__ inline void add_fours(const StoredFour& x, const StoredFour& y, DType dtype, double inverse_a,
                                 double inverse_b, double (&lanes)[kRowThreadLanes]) {
  double p[4];
  double q[4];
  widen_four(x, dtype, p);
  widen_four(y, dtype, q);
  KITH_UNROLL
  for (int i = 0; i < kRowThreadLanes; ++i) {
    lanes[i] = canonical_step<kKind>(lanes[i], p[i], q[i], inverse_a, inverse_b);
  }
}

// Rows whose fours can be loaded at once, several of them under way at a time: what products are made of.
template <KeyKind kKind, typename Stored>
__device__ inline double sum_of_aligned(const std::byte* a, const std::byte* b, int64_t cols, DType dtype,
                                        double inverse_a, double inverse_b) {
  constexpr int kAhead = 4;
  const Four<Stored>* const first_row = vectors<Four<Stored>>(a);
  const Four<Stored>* const second_row = vectors<Four<Stored>>(b);
  double lanes[kRowThreadLanes] = {};
  const int fours = static_cast<int>(cols / 4);
#pragma unroll 1
  for (int start = static_cast<int>(threadIdx.x) % kRowThreads; start < fours; start += kAhead * kRowThreads) {
    Four<Stored> x[kAhead] = {};
    Four<Stored> y[kAhead] = {};
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      if (start + ahead * kRowThreads >= fours) break;
      x[ahead] = first_row[start + ahead * kRowThreads];
      y[ahead] = second_row[start + ahead * kRowThreads];
    }
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      if (start + ahead * kRowThreads >= fours) break;
      add_fours<kKind>(widen_bits(x[ahead]), widen_bits(y[ahead]), dtype, inverse_a, inverse_b, lanes);
    }
  }
  return join_lanes<kKind>(lanes);
}

// Rows of bytes, 16 in a load. Sums of integers are exact whatever their order, as the canonical sum of these is: no
// double comes into it, of which a byte is no quick beginning.
inline constexpr int64_t kMostSummedBytes = 1 << 16;  // whose sum has room in a word
template <KeyKind kKind>
__device__ inline double sum_of_bytes(const std::byte* a, const std::byte* b, int64_t cols, bool has_signs) {
  const uint4* const first_row = vectors<uint4>(a);
  const uint4* const second_row = vectors<uint4>(b);
  const int chunks = static_cast<int>(cols / 16);
  uint32_t sum = 0;
#pragma unroll 2
  for (int chunk = static_cast<int>(threadIdx.x) % kRowThreads; chunk < chunks; chunk += kRowThreads) {
    const uint4 x = first_row[chunk];
    const uint4 y = second_row[chunk];
    const uint32_t p[4] = {x.x, x.y, x.z, x.w};
    const uint32_t q[4] = {y.x, y.y, y.z, y.w};
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      if constexpr (kKind == KeyKind::inner_product) {
        sum = has_signs
                  ? static_cast<uint32_t>(__dp4a(static_cast<int>(p[i]), static_cast<int>(q[i]), static_cast<int>(sum)))
                  : __dp4a(p[i], q[i], sum);
      } else {
        const uint32_t apart = has_signs ? __vabsdiffs4(p[i], q[i]) : __vabsdiffu4(p[i], q[i]);
        sum = __dp4a(apart, apart, sum);
      }
    }
  }
  KITH_UNROLL
  for (int apart = kRowThreads / 2; apart > 0; apart /= 2) {
    sum += __shfl_down_sync(0xFFFFFFFFu, sum, static_cast<unsigned>(apart), kRowThreads);
  }
  const bool below_zero = kKind == KeyKind::inner_product && has_signs;
  return below_zero ? static_cast<double>(static_cast<int32_t>(sum)) : static_cast<double>(sum);
}

// Any rows. What lies past the last column is zero, and adds nothing.
template <KeyKind kKind>
__device__ inline double sum_of(const std::byte* a, const std::byte* b, int64_t cols, DType dtype, bool aligned,
                                double inverse_a, double inverse_b) {
  double lanes[kRowThreadLanes] = {};
#pragma unroll 1
  for (int64_t first = kRowThreadLanes * (threadIdx.x % kRowThreads); first < cols; first += kCanonicalLanes) {
    add_fours<kKind>(fetch_four(a, dtype, first, cols, aligned), fetch_four(b, dtype, first, cols, aligned), dtype,
                     inverse_a, inverse_b, lanes);
  }
  return join_lanes<kKind>(lanes);
}

// Whether sum_of_bytes() takes rows of bytes.
__device__ inline bool bytes_in_chunks(const PairKeyRows& task) {
  return is_aligned(task.rows.data, 16) && task.rows.stride % 16 == 0 && task.cols % 16 == 0 &&
         task.cols <= kMostSummedBytes;
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
  const std::byte* const x = row_bytes_at(task.rows, a);
  const std::byte* const y = row_bytes_at(task.rows, b);
  const bool aligned = fours_aligned(task.rows);
  const DType dtype = task.rows.dtype;
  const bool whole = is_product(kKind) && aligned && task.cols % 4 == 0;
  double sum = 0;
  if constexpr (is_product(kKind)) {
    if (whole && dtype == DType::f32) {
      sum = sum_of_aligned<kKind, uint32_t>(x, y, task.cols, DType::f32, inverse_a, inverse_b);
    } else if (whole && stored_bytes(dtype) == 2) {
      sum = sum_of_aligned<kKind, uint16_t>(x, y, task.cols, dtype, inverse_a, inverse_b);
    } else if (kKind != KeyKind::cosine && whole && bytes_in_chunks(task)) {
      sum = sum_of_bytes<kKind>(x, y, task.cols, dtype == DType::i8);
    } else if (whole) {
      sum = sum_of_aligned<kKind, uint8_t>(x, y, task.cols, dtype, inverse_a, inverse_b);
    }
  }
  if (!whole) sum = sum_of<kKind>(x, y, task.cols, dtype, aligned, inverse_a, inverse_b);
  if (kKind == KeyKind::squared_l2 && task.kind == KeyKind::l2) return canonical_key<KeyKind::l2>(sum, 0, 0);
  return canonical_key<kKind>(sum, inverse_a, inverse_b);
}

}  // namespace pair_key_detail

// Right in the first of the four threads, which all call it with the same rows. The same whichever comes first. All
// threads of the warp call it.
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

// The same for metrics that are products, within the caller: what it reads of the rows' description are its constants.
__device__ __forceinline__ float product_pair_key(const PairKeyRows& task, uint32_t a, uint32_t b) {
  using namespace pair_key_detail;
  if (task.kind == KeyKind::inner_product) return key_of<KeyKind::inner_product>(task, a, b);
  if (task.kind == KeyKind::cosine) return key_of<KeyKind::cosine>(task, a, b);
  return key_of<KeyKind::squared_l2>(task, a, b);
}

}  // namespace kith
