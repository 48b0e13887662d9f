// A row and a centre of a SettleTask: their addresses, their canonical sum, and the key made from it.
#pragma once

#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "kernels/assign/settle_task_cuda.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/distance/row_threads_cuda.hpp"

#include <cstdint>
#include <type_traits>

namespace kith {

// The alignment of rows and centres: whether four neighbouring values can be read at once.
struct Alignment {
  bool rows;
  bool centres;
};

template <bool kAligned, typename X>
__device__ __forceinline__ Four<X> load_whole_four(const X* from) {
  if constexpr (kAligned) return load_vector<Four<X>>(from);
  return {from[0], from[1], from[2], from[3]};
}

// The canonical sums of kRows rows with kCentres centres by four neighbouring threads, four lanes each, right in the
// first of them: for rows that are many, or that share what they are compared with.
template <KeyKind kKind, int kRows, int kCentres, typename X>
__device__ __forceinline__ void pair_sums(const X* const (&rows)[kRows], const float* const (&centres)[kCentres],
                                          int64_t cols, const Alignment& aligned, double (&sums)[kRows][kCentres]) {
  // Steps whose values are read before they are added: memory is far away.
  constexpr int kAhead = kRows + kCentres == 2 ? 8 : kRows + kCentres == 3 ? 4 : 2;
  const unsigned threads = row_threads();
  double lanes[kRows][kCentres][kRowThreadLanes] = {};
  const auto add = [&](const Four<X>& values, const Four<float>& with, int r, int c) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) {
      const auto q = static_cast<double>(static_cast<float>(values.values[i]));
      lanes[r][c][i] = canonical_step<kKind>(lanes[r][c][i], q, static_cast<double>(with.values[i]), 0, 0);
    }
  };
  int64_t first = kRowThreadLanes * (static_cast<int>(threadIdx.x) % kRowThreads);
  const auto add_whole_steps = [&]<bool kAligned>(std::bool_constant<kAligned>) {
    for (; first + (kAhead - 1) * kCanonicalLanes + kRowThreadLanes <= cols; first += kAhead * kCanonicalLanes) {
      Four<X> values[kRows][kAhead];
      Four<float> with[kCentres][kAhead];
      KITH_UNROLL
      for (int a = 0; a < kAhead; ++a) {
        const int64_t col = first + a * kCanonicalLanes;
        KITH_UNROLL
        for (int r = 0; r < kRows; ++r) values[r][a] = load_whole_four<kAligned>(rows[r] + col);
        KITH_UNROLL
        for (int c = 0; c < kCentres; ++c) with[c][a] = load_whole_four<kAligned>(centres[c] + col);
      }
      KITH_UNROLL
      for (int a = 0; a < kAhead; ++a) {
        KITH_UNROLL
        for (int r = 0; r < kRows; ++r) {
          KITH_UNROLL
          for (int c = 0; c < kCentres; ++c) add(values[r][a], with[c][a], r, c);
        }
      }
    }
  };
  if (aligned.rows && aligned.centres) {
    add_whole_steps(std::true_type());
  } else {
    add_whole_steps(std::false_type());
  }
  for (; first < cols; first += kCanonicalLanes) {
    KITH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Four<X> values = load_four(rows[r], first, cols, aligned.rows);
      KITH_UNROLL
      for (int c = 0; c < kCentres; ++c) add(values, load_four(centres[c], first, cols, aligned.centres), r, c);
    }
  }
  KITH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    KITH_UNROLL
    for (int c = 0; c < kCentres; ++c) sums[r][c] = join_row_threads(lanes[r][c], threads);
  }
}

template <KeyKind kKind, typename X>
__device__ double pair_sum(const X* row, const float* centre, int64_t cols, const Alignment& aligned) {
  double sum[1][1];
  pair_sums<kKind, 1, 1>({row}, {centre}, cols, aligned, sum);
  return sum[0][0];
}

template <bool kProduct>
constexpr KeyKind pair_step() {
  return kProduct ? KeyKind::inner_product : KeyKind::squared_l2;
}

template <typename X>
__device__ Alignment pair_alignment(const SettleTask& task) {
  return {rows_aligned(static_cast<const X*>(task.rows.data), task.rows.stride), rows_aligned(task.centres, task.cols)};
}

template <typename X>
__device__ const X* pair_row(const SettleTask& task, int64_t row) {
  return static_cast<const X*>(task.rows.data) + row * task.rows.stride;
}

// The key of a canonical sum. Roots make some keys equal that are not, so a search by l2 compares roots.
template <bool kProduct>
__device__ float pair_key(const SettleTask& task, double sum) {
  if (kProduct) return canonical_key<KeyKind::inner_product>(sum, 0, 0);
  return task.kind == KeyKind::l2 ? canonical_key<KeyKind::l2>(sum, 0, 0)
                                  : canonical_key<KeyKind::squared_l2>(sum, 0, 0);
}

template <bool kProduct>
__device__ uint64_t packed_pair(const SettleTask& task, double sum, uint32_t centre) {
  return pack_neighbor(ordered_key(pair_key<kProduct>(task, sum)), centre);
}

__device__ inline void take_nearest(const SettleTask& task, int64_t row, uint64_t nearest) {
  task.labels[row] = static_cast<int32_t>(row_of(nearest));
  task.keys[row] = key_of_ordered(ordered_of(nearest));
}

// Calls use<product, X>(): whether keys are of inner products, and what the rows' values are.
template <typename Use>
void visit_pairs(const SettleTask& task, const Use& use) {
  visit_dtype(task.rows.dtype, [&]<typename X>(StoredAs<X>) {
    if (task.kind == KeyKind::inner_product) return use.template operator()<true, X>();
    use.template operator()<false, X>();
  });
}

}  // namespace kith
