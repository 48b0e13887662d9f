// The samples that meet in a join, in a block's memory: forward and reverse ones, nobody twice, NEW ones first.
#pragma once

#include "graph/nn_descent/join_cuda.hpp"
#include "graph/nn_descent/join_rules.hpp"

#include <cstdint>

namespace kith {

struct JoinCounts {
  int fresh = 0;  // NEW
  int all = 0;
};

// Every thread of the block calls it. `raw` has room for 4 p numbers, a multiple of 4 of them, 16-byte aligned; so has
// `ids`, which is filled. Whoever is NEW is not OLD; in a merge OLD ones are of the row's own set.
template <int kThreads>
__device__ inline JoinCounts collect_samples(const DeviceSamples& samples, int64_t row, int64_t boundary, uint32_t* raw,
                                             uint32_t* ids) {
  __shared__ int warp_counts[kThreads / 32];
  const auto p = static_cast<int>(samples.samples);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = static_cast<int>(threadIdx.x); i < 4 * p; i += kThreads) {
    const int kind = i / (2 * p);
    const int place = i % (2 * p);
    const uint32_t* const from = place < p ? samples.forward : samples.reverse;
    raw[i] = from[(2 * row + kind) * p + place % p];
  }
  __syncthreads();
  JoinCounts counts;
  for (int first = 0; first < 4 * p; first += kThreads) {
    const int i = first + static_cast<int>(threadIdx.x);
    const uint32_t mine = i < 4 * p ? raw[i] : kNobody;
    bool stays = mine != kNobody;
    if (stays && i >= 2 * p && boundary > 0) stays = (mine < boundary) == (row < boundary);
    // Whoever came before has the place.
    for (int j = 0; stays && j < i; j += 4) {
      const uint4 others = *reinterpret_cast<const uint4*>(raw + j);
      stays = !((others.x == mine) || (others.y == mine && j + 1 < i) || (others.z == mine && j + 2 < i) ||
                (others.w == mine && j + 3 < i));
    }
    const unsigned lanes = __ballot_sync(0xFFFFFFFFu, stays);
    if (lane == 0) warp_counts[warp] = __popc(lanes);
    counts.fresh += __syncthreads_count(stays && i < 2 * p);
    int place = counts.all + __popc(lanes & ((1u << lane) - 1));
    for (int w = 0; w < kThreads / 32; ++w) {
      if (w < warp) place += warp_counts[w];
      counts.all += warp_counts[w];
    }
    if (stays) ids[place] = mine;
    __syncthreads();
  }
  return counts;
}

}  // namespace kith
