// Numbers sorted by their keys on the GPU; equal keys keep their order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// Scratch bytes for sorting `count` pairs, beside two arrays each of keys and of values.
int64_t sort_pairs_bytes(int64_t count);

// Keys and values begin in the first arrays; where they end is returned: 0 or 1.
struct SortPairsTask {
  uint32_t* keys[2] = {};
  uint32_t* values[2] = {};
  int64_t count = 0;
  int bits = 32;  // of a key: those above are zeros
  std::byte* memory = nullptr;
};
int launch_sort_pairs(const SortPairsTask& task, cudaStream_t stream);

}  // namespace kith
