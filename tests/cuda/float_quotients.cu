#include "cuda/float_quotients.hpp"

#include "cuda/error.hpp"
#include "kernels/distance/distance_tile_cuda.hpp"

#include <cuda_runtime_api.h>

namespace kith {
namespace {

struct Wrong {
  unsigned long long count;
  double first[2];
};

__device__ uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

__device__ float positive_float(uint32_t bits) {
  bits &= 0x7FFFFFFFu;
  return __uint_as_float(bits < 0x7F800000u ? bits : bits & 0x7F7FFFFFu);
}

__global__ void check_kernel(QuotientPairs pairs, uint64_t seed, int64_t count, Wrong* wrong) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const uint64_t random = mixed(seed + static_cast<uint64_t>(i));
    const auto low = static_cast<uint32_t>(random);
    const auto high = static_cast<uint32_t>(random >> 32);
    double q = 0;
    double x = 0;
    if (pairs == QuotientPairs::integers) {
      q = low % 256;
      x = high % 256;
    } else {
      const float value = positive_float(low);
      q = value;
      x = positive_float(pairs == QuotientPairs::any_bits ? high : __float_as_uint(value) ^ (high & 0xFFu));
    }
    const double n = (q - x) * (q - x);
    const double s = q + x;
    if (s == 0.0) continue;
    if (__double_as_longlong(float_quotient(n, s)) == __double_as_longlong(n / s)) continue;
    if (atomicAdd(&wrong->count, 1ull) == 0) {
      wrong->first[0] = n;
      wrong->first[1] = s;
    }
  }
}

}  // namespace

uint64_t wrong_float_quotients(QuotientPairs pairs, uint64_t seed, int64_t count, double (&first)[2]) {
  Wrong* wrong = nullptr;
  KITH_CUDA_CHECK(cudaMalloc(&wrong, sizeof *wrong));
  KITH_CUDA_CHECK(cudaMemset(wrong, 0, sizeof *wrong));
  check_kernel<<<1024, 256>>>(pairs, seed, count, wrong);
  Wrong found{};
  const cudaError_t error = cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost);
  (void)cudaFree(wrong);
  KITH_CUDA_CHECK(error);
  first[0] = found.first[0];
  first[1] = found.first[1];
  return found.count;
}

}  // namespace kith
