// The mixture's bytes as halves, piece by piece. Include from a .cu file.
#pragma once

#include "mixture_rows_cuda.hpp"

#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>

namespace mixture {

__global__ inline void to_halves_kernel(const uint8_t* from, int64_t count, __half* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = __float2half_rn(static_cast<float>(from[i]));
}

inline void fill_halves(const OnDevice& mixture, int64_t rows, int64_t cols, __half* to) {
  constexpr int64_t kPiece = 1000000;
  const DeviceBytes bytes(static_cast<size_t>(std::min(kPiece, rows) * cols));
  for (int64_t first = 0; first < rows; first += kPiece) {
    const int64_t count = std::min(kPiece, rows - first);
    mixture.fill(1, first, count, bytes.as<uint8_t>());
    to_halves_kernel<<<static_cast<unsigned>((count * cols + 255) / 256), 256>>>(bytes.as<uint8_t>(), count * cols,
                                                                               to + first * cols);
  }
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
}

}  // namespace mixture
