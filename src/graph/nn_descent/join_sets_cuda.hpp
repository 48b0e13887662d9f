// The samples that meet in a join, in a block's memory: forward and reverse ones, nobody twice, NEW ones first.
#pragma once

#include "cuda/device_core.hpp"
#include "graph/nn_descent/join_rules.hpp"
#include "graph/nn_descent/join_slots_cuda.hpp"
#include "graph/nn_descent/join_task_cuda.hpp"

#include <cstdint>

namespace kith {

// Places of the table by which those that come twice are found: a power of two, twice as many as there are samples.
KITH_HOST_DEVICE constexpr int sample_table_bits(int64_t samples) {
  int bits = 5;
  while ((int64_t{1} << bits) < 8 * samples) ++bits;
  return bits;
}

// Whether it is the first of that number.
__device__ inline bool enter_table(uint32_t* table, int bits, uint32_t number) {
  const uint32_t mask = (1u << bits) - 1;
  for (uint32_t place = (number * 0x9E3779B1u) >> (32 - bits);; place = (place + 1) & mask) {
    const uint32_t there = atomicCAS(table + place, kNobody, number);
    if (there == kNobody) return true;
    if (there == number) return false;
  }
}

// Every thread of the block calls it. `table` has 1 << sample_table_bits(p) places; `ids`, room for 4 p numbers, is
// filled. Whoever is NEW is not OLD; in a merge OLD ones are of the row's own set.
template <int kThreads>
__device__ inline JoinCounts collect_samples(const DeviceSamples& samples, int64_t row, int64_t boundary, uint32_t* table,
                                             uint32_t* ids) {
  __shared__ int warp_counts[kThreads / 32];
  const auto p = static_cast<int>(samples.samples);
  const int bits = sample_table_bits(p);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < 1 << bits; i += kThreads) table[i] = kNobody;
  JoinCounts counts;
  int all = 0;  // of both kinds
#pragma unroll 1
  for (int first = 0; first < 4 * p; first += kThreads) {
    const int i = first + static_cast<int>(threadIdx.x);
    const bool fresh = i < 2 * p;
    uint32_t mine = kNobody;
    if (i < 4 * p) {
      const int place = fresh ? i : i - 2 * p;
      const uint32_t* const from = (place < p ? samples.forward : samples.reverse) + (2 * row + (fresh ? 0 : 1)) * p;
      mine = from[place < p ? place : place - p];
    }
    bool stays = mine != kNobody;
    if (stays && !fresh && boundary > 0) stays = (mine < boundary) == (row < boundary);
    __syncthreads();  // the table is clear, and all that came before is in it
    if (stays && fresh) stays = enter_table(table, bits, mine);
    __syncthreads();
    if (stays && !fresh) stays = enter_table(table, bits, mine);
    const unsigned lanes = __ballot_sync(0xFFFFFFFFu, stays);
    if (lane == 0) warp_counts[warp] = __popc(lanes);
    counts.fresh += __syncthreads_count(stays && fresh);
    int place = all + __popc(lanes & ((1u << lane) - 1));
    KITH_UNROLL
    for (int w = 0; w < kThreads / 32; ++w) {
      const int count = warp_counts[w];
      if (w < warp) place += count;
      all += count;
    }
    if (stays) ids[place] = mine;
  }
  counts.old = all - counts.fresh;
  __syncthreads();
  return counts;
}

}  // namespace kith
