// What the kernels that make operands have in common: their blocks, and maxima over all of them.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"

namespace kith {

inline constexpr int kOperandWarps = 8;
inline constexpr int kOperandThreads = 32 * kOperandWarps;
inline constexpr int kOperandMostBlocks = 132 * 16;  // each takes rows until none are left
inline constexpr unsigned kWholeWarp = 0xFFFFFFFFu;

// `value` is not negative.
__device__ inline void raise(float* place, float value) { atomicMax(vectors<int>(place), __float_as_int(value)); }

}  // namespace kith
