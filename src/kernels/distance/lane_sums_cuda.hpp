// The canonical sums of a row with a few vectors of floats by sixteen neighbouring threads, a lane each: for rows that
// are few and scattered, or in the first-level cache. Reads of any alignment are as good as others.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

template <KeyKind kKind, int kCentres, typename X>
__device__ __forceinline__ void lane_sums(const X* row, const float* const (&centres)[kCentres], int64_t cols,
                                          double (&sums)[kCentres]) {
  constexpr int kAhead = 16 / kCentres;
  const unsigned threads = 0xFFFFu << (threadIdx.x % 32 / kCanonicalLanes * kCanonicalLanes);
  const auto add = [&](X value, float with, int c) {
    sums[c] = canonical_step<kKind>(sums[c], static_cast<double>(static_cast<float>(value)),
                                    static_cast<double>(with), 0, 0);
  };
  KITH_UNROLL
  for (int c = 0; c < kCentres; ++c) sums[c] = 0;
  int64_t col = threadIdx.x % kCanonicalLanes;
  for (; col + (kAhead - 1) * kCanonicalLanes < cols; col += kAhead * kCanonicalLanes) {
    X values[kAhead];
    float with[kCentres][kAhead];
    KITH_UNROLL
    for (int a = 0; a < kAhead; ++a) {
      values[a] = row[col + a * kCanonicalLanes];
      KITH_UNROLL
      for (int c = 0; c < kCentres; ++c) with[c][a] = centres[c][col + a * kCanonicalLanes];
    }
    KITH_UNROLL
    for (int a = 0; a < kAhead; ++a) {
      KITH_UNROLL
      for (int c = 0; c < kCentres; ++c) add(values[a], with[c][a], c);
    }
  }
  for (; col < cols; col += kCanonicalLanes) {
    KITH_UNROLL
    for (int c = 0; c < kCentres; ++c) add(row[col], centres[c][col], c);
  }
  __syncwarp(threads);
  KITH_UNROLL
  for (int c = 0; c < kCentres; ++c) sums[c] = warp_sum<kCanonicalLanes>(sums[c], threads);
}

}  // namespace kith
