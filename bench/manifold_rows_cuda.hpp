// Rows on a curved sheet of 24 dimensions, hard for partitions: x = 30 tanh(z W / 5) V with z ~ N(0,1)^24, W a fixed 24
// x d and V a fixed d x d matrix of N(0,1), V divided by 11. Made on a GPU: any rows of it, again and again the same.
// Include from a .cu file.
#pragma once

#include "mixture_rows_cuda.hpp"

namespace manifold {

constexpr int kFactors = 24;
constexpr int kThreads = 128;
constexpr int kRowsPerBlock = 8;

// W, then V.
__global__ inline void parts_kernel(float* parts, int cols) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= int64_t{kFactors + cols} * cols) return;
  const kith::Random4 words = kith::CounterRng(12, 1).block(static_cast<uint64_t>(i));
  const float value = mixture::gaussians(words.word[0], words.word[1]).x;
  parts[i] = i < int64_t{kFactors} * cols ? value : value / 11;
}

__global__ inline void __launch_bounds__(kThreads)
    rows_kernel(const float* parts, uint64_t seed, uint64_t first, int64_t count, int cols, float* out) {
  extern __shared__ float bent[];  // kRowsPerBlock x cols
  __shared__ float z[kRowsPerBlock][kFactors];
  const kith::CounterRng rng(seed, 4);
  const int64_t start = static_cast<int64_t>(blockIdx.x) * kRowsPerBlock;
  for (int i = static_cast<int>(threadIdx.x); i < kRowsPerBlock * kFactors; i += kThreads) {
    const uint64_t number = (first + static_cast<uint64_t>(start)) * kFactors + static_cast<uint64_t>(i);
    const kith::Random4 words = rng.block(number);
    z[i / kFactors][i % kFactors] = mixture::gaussians(words.word[0], words.word[1]).x;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kRowsPerBlock * cols; i += kThreads) {
    float sum = 0;
    for (int f = 0; f < kFactors; ++f) sum += z[i / cols][f] * parts[f * cols + i % cols];
    bent[i] = 30 * tanhf(sum / 5);
  }
  __syncthreads();
  const float* const turned = parts + int64_t{kFactors} * cols;
  for (int col = static_cast<int>(threadIdx.x); col < cols; col += kThreads) {
    float sums[kRowsPerBlock] = {};
    for (int c = 0; c < cols; ++c) {
      const float value = turned[static_cast<int64_t>(c) * cols + col];
      for (int row = 0; row < kRowsPerBlock; ++row) sums[row] += bent[row * cols + c] * value;
    }
    for (int row = 0; row < kRowsPerBlock && start + row < count; ++row) out[(start + row) * cols + col] = sums[row];
  }
}

class OnDevice {
 public:
  explicit OnDevice(int64_t cols)
      : cols_(static_cast<int>(cols)), parts_(static_cast<size_t>((kFactors + cols) * cols) * sizeof(float)) {
    const auto values = static_cast<unsigned>((kFactors + cols) * cols);
    parts_kernel<<<(values + kThreads - 1) / kThreads, kThreads>>>(parts_.as<float>(), cols_);
    check(cudaDeviceSynchronize());
  }

  // Rows first, first + 1, ... of that seed; they are there when it returns.
  void fill(uint64_t seed, int64_t first, int64_t count, float* out) const {
    if (count == 0) return;
    const auto blocks = static_cast<unsigned>((count + kRowsPerBlock - 1) / kRowsPerBlock);
    rows_kernel<<<blocks, kThreads, static_cast<size_t>(kRowsPerBlock * cols_) * sizeof(float)>>>(
        parts_.as<float>(), seed, static_cast<uint64_t>(first), count, cols_, out);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
  }

 private:
  int cols_;
  DeviceBytes parts_;
};

}  // namespace manifold
