// The mixture of mixture.hpp, made on a device: the same distribution, other numbers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace {

__device__ uint64_t mixed(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + index * 0xD1B54A32D192ED03u + 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}
__device__ float gaussian(uint64_t seed, uint64_t index) {
  const uint64_t bits = mixed(seed, index);
  const float u = (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f;
  const float v = static_cast<float>(bits & 0xFFFFFF) * 0x1p-24f;
  return sqrtf(-2 * logf(u)) * cosf(6.2831853f * v);
}

// The fixed parts: 2,000 centres and 16 factors.
__global__ void mixture_parts_kernel(float* centres, float* factors, int cols, float far) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < int64_t{2000} * cols) centres[i] = far * 40 * fabsf(gaussian(3, static_cast<uint64_t>(i)));
  if (i < int64_t{16} * cols) factors[i] = 6 * gaussian(5, static_cast<uint64_t>(i));
}

// A block for each row.
__global__ void mixture_kernel(const float* centres, const float* factors, uint64_t first, int cols, bool bytes,
                               float* rows) {
  const uint64_t row = first + blockIdx.x;
  const uint64_t centre = mixed(1, row) % 2000;
  __shared__ float z[16];
  if (threadIdx.x < 16) z[threadIdx.x] = gaussian(2, row * 16 + threadIdx.x);
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < cols; c += static_cast<int>(blockDim.x)) {
    float value = centres[centre * static_cast<uint64_t>(cols) + static_cast<uint64_t>(c)] +
                  3 * gaussian(4, row * 4096 + static_cast<uint64_t>(c));
    for (int f = 0; f < 16; ++f) value += z[f] * factors[f * cols + c];
    if (bytes) value = fminf(fmaxf(rintf(value), 0.0f), 255.0f);
    rows[static_cast<int64_t>(blockIdx.x) * cols + c] = value;
  }
}

}  // namespace
