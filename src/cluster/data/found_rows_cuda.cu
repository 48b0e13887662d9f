#include "cluster/data/found_rows_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"

#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    take_found_kernel(const uint64_t* found, int64_t count, const uint32_t* rows, int32_t* labels, float* keys) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t row = rows == nullptr ? i : int64_t{rows[i]};
  labels[row] = static_cast<int32_t>(row_of(found[i]));
  keys[row] = key_of_ordered(ordered_of(found[i]));
}

// A power of two in double is exact: what is rounded is rounded once.
__global__ void __launch_bounds__(kThreads)
    distances_of_keys_kernel(float* keys, int64_t count, bool spherical, double scale) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const float key = keys[i];
  keys[i] = spherical ? 0.0f - key : static_cast<float>(static_cast<double>(__fsqrt_rn(key)) * scale);
}

}  // namespace

void launch_take_found(const uint64_t* found, int64_t count, const uint32_t* rows, int32_t* labels, float* keys,
                       cudaStream_t stream) {
  launch(take_found_kernel, Grid::over(count, kThreads), stream, found, count, rows, labels, keys);
}

void launch_distances_of_keys(float* keys, int64_t count, bool spherical, int exponent, cudaStream_t stream) {
  launch(distances_of_keys_kernel, Grid::over(count, kThreads), stream, keys, count, spherical,
         std::ldexp(1.0, -exponent));
}

}  // namespace kith
