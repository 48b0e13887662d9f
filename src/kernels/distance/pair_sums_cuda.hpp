// The canonical sums of some rows with some vectors of floats by four neighbouring threads, four lanes each: for rows
// that are many, or that share what they are compared with.
#pragma once

#include "cuda/device_core.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/distance/row_threads_cuda.hpp"

#include <cstdint>
#include <type_traits>

namespace kith {

// How rows and centres lie: whether four neighbouring values can be read at a time.
struct Alignment {
  bool rows;
  bool centres;
};

template <bool kAligned, typename X>
__device__ __forceinline__ Four<X> load_whole_four(const X* from) {
  if constexpr (kAligned) return load_vector<Four<X>>(from);
  return {from[0], from[1], from[2], from[3]};
}

// The canonical sums of kRows rows with kCentres centres, right in the first of the four threads that share them.
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

}  // namespace kith
