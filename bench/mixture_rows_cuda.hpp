// The mixture of mixture.hpp, whole numbers from 0 to 255, made on a GPU: any rows of it, again and again the same, at
// the speed of memory. Include from a .cu file.
#pragma once

#include "cuda_timing.hpp"

#include "core/random.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace mixture {

constexpr int kCentres = 2000;
constexpr int kFactors = 16;
constexpr int kThreads = 256;
constexpr int kRowsPerBlock = 32;

// Two gaussian numbers from two words.
__device__ inline float2 gaussians(uint32_t a, uint32_t b) {
  const float u = (static_cast<float>(a >> 8) + 0.5f) * 0x1p-24f;
  const float radius = sqrtf(-2.0f * __logf(u));
  float sine, cosine;
  __sincosf(6.2831853f * (static_cast<float>(b >> 8) * 0x1p-24f), &sine, &cosine);
  return {radius * cosine, radius * sine};
}

// The fixed parts: centres, then factors.
__global__ inline void parts_kernel(float* parts, int cols) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= int64_t{kCentres + kFactors} * cols) return;
  const kith::Random4 words = kith::CounterRng(11, 1).block(static_cast<uint64_t>(i));
  const float value = gaussians(words.word[0], words.word[1]).x;
  parts[i] = i < int64_t{kCentres} * cols ? 40.0f * fabsf(value) : 6.0f * value;
}

// A block has a few rows; four columns a thread at a time.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    rows_kernel(const float* parts, uint64_t seed, uint64_t first, int64_t count, int cols, T* out) {
  __shared__ float z[kRowsPerBlock][kFactors];
  __shared__ int centres[kRowsPerBlock];
  const kith::CounterRng of_rows(seed, 2);
  const kith::CounterRng of_values(seed, 3);
  const int64_t start = static_cast<int64_t>(blockIdx.x) * kRowsPerBlock;
  for (int i = static_cast<int>(threadIdx.x); i < kRowsPerBlock * 5; i += kThreads) {
    const int row = i / 5;
    const int part = i % 5;
    const kith::Random4 words =
        of_rows.block((first + static_cast<uint64_t>(start + row)) * 5 + static_cast<uint64_t>(part));
    if (part == 4) {
      centres[row] = static_cast<int>(words.word[0] % kCentres);
      continue;
    }
    const float2 a = gaussians(words.word[0], words.word[1]);
    const float2 b = gaussians(words.word[2], words.word[3]);
    z[row][part * 4] = a.x;
    z[row][part * 4 + 1] = a.y;
    z[row][part * 4 + 2] = b.x;
    z[row][part * 4 + 3] = b.y;
  }
  __syncthreads();
  const float* const factors = parts + int64_t{kCentres} * cols;
  const int fours = cols / 4;
  for (int i = static_cast<int>(threadIdx.x); i < kRowsPerBlock * fours; i += kThreads) {
    const int row = i / fours;
    const int col = i % fours * 4;
    if (start + row >= count) break;
    const uint64_t number = first + static_cast<uint64_t>(start + row);
    const kith::Random4 words =
        of_values.block(number * static_cast<uint64_t>(fours) + static_cast<uint64_t>(i % fours));
    const float2 a = gaussians(words.word[0], words.word[1]);
    const float2 b = gaussians(words.word[2], words.word[3]);
    const float4 centre = *reinterpret_cast<const float4*>(parts + int64_t{centres[row]} * cols + col);
    float values[4] = {centre.x + 3 * a.x, centre.y + 3 * a.y, centre.z + 3 * b.x, centre.w + 3 * b.y};
#pragma unroll
    for (int f = 0; f < kFactors; ++f) {
      const float4 factor = *reinterpret_cast<const float4*>(factors + f * cols + col);
      values[0] += z[row][f] * factor.x;
      values[1] += z[row][f] * factor.y;
      values[2] += z[row][f] * factor.z;
      values[3] += z[row][f] * factor.w;
    }
    T* const to = out + (start + row) * cols + col;
    for (int c = 0; c < 4; ++c) to[c] = static_cast<T>(fminf(fmaxf(rintf(values[c]), 0.0f), 255.0f));
  }
}

// The mixture of vectors with so many columns, a multiple of four.
class OnDevice {
 public:
  explicit OnDevice(int64_t cols)
      : cols_(static_cast<int>(cols)), parts_(static_cast<size_t>((kCentres + kFactors) * cols) * sizeof(float)) {
    const auto values = static_cast<unsigned>((kCentres + kFactors) * cols);
    parts_kernel<<<(values + kThreads - 1) / kThreads, kThreads>>>(parts_.as<float>(), cols_);
    check(cudaDeviceSynchronize());
  }

  // Rows first, first + 1, ... of that seed; they are there when it returns.
  template <typename T>
  void fill(uint64_t seed, int64_t first, int64_t count, T* out) const {
    if (count == 0) return;
    const auto blocks = static_cast<unsigned>((count + kRowsPerBlock - 1) / kRowsPerBlock);
    rows_kernel<T><<<blocks, kThreads>>>(parts_.as<float>(), seed, static_cast<uint64_t>(first), count, cols_, out);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
  }

 private:
  int cols_;
  DeviceBytes parts_;
};

}  // namespace mixture
