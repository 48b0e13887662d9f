// Numbers sorted by their keys on the GPU; equal keys keep their order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// Scratch bytes for sorting `count` pairs, in addition to two arrays each of keys and values.
int64_t sort_pairs_bytes(int64_t count);

// Input is in the first arrays; returns the index (0 or 1) of the arrays with the result.
struct SortPairsTask {
  uint32_t* keys[2] = {};
  uint32_t* values[2] = {};
  int64_t count = 0;
  int bits = 32;  // low bits of a key to sort by; the others are zero
  std::byte* memory = nullptr;
};
int launch_sort_pairs(const SortPairsTask& task, cudaStream_t stream);

}  // namespace kith
