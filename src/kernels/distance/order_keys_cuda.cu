#include "kernels/distance/order_keys_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/error.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    order_keys_kernel(uint32_t* keys, int64_t queries, int64_t rows, int64_t stride) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= rows) return;
  for (int64_t query = blockIdx.y; query < queries; query += gridDim.y) {
    uint32_t* const key = keys + query * stride + row;
    *key = ordered_key(__uint_as_float(*key));
  }
}

}  // namespace

void launch_order_keys(uint32_t* keys, int64_t queries, int64_t rows, int64_t stride, cudaStream_t stream) {
  if (queries == 0 || rows == 0) return;
  constexpr int64_t kMostQueries = 1024;
  const dim3 grid(static_cast<unsigned>((rows + kThreads - 1) / kThreads),
                  static_cast<unsigned>(queries < kMostQueries ? queries : kMostQueries));
  order_keys_kernel<<<grid, kThreads, 0, stream>>>(keys, queries, rows, stride);
  KITH_CUDA_CHECK_LAUNCH("order_keys_kernel");
}

}  // namespace kith
