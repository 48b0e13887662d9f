// The block of pairs whose keys a DenseScan computes at a time, and its memory: for the scan and the plan alike.
#pragma once

#include "core/host_array.hpp"
#include "kernels/distance/distance_block_cpu.hpp"

#include <cstdint>

namespace kith {

inline constexpr int64_t kDenseRows = 512;
inline constexpr int64_t kDenseQueries = 96;

// The keys, after the scratch for computing them.
inline int64_t dense_block_bytes(int64_t cols) {
  return canonical_block_bytes(cols) + array_bytes<float>(kDenseRows * kDenseQueries);
}

}  // namespace kith
