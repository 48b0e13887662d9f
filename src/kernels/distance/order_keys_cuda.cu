#include "kernels/distance/order_keys_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) order_keys_kernel(KeyTile tile) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= tile.rows) return;
  for (int64_t query = blockIdx.y; query < tile.queries; query += gridDim.y) {
    uint32_t* const place = tile.keys + query * tile.stride + row;
    *place = ordered_key(__uint_as_float(*place));
  }
}

}  // namespace

void launch_order_keys(const KeyTile& tile, cudaStream_t stream) {
  constexpr int64_t kMostQueries = 1024;
  const dim3 grid(static_cast<unsigned>(divide_up(tile.rows, kThreads)),
                  static_cast<unsigned>(tile.queries < kMostQueries ? tile.queries : kMostQueries));
  launch(order_keys_kernel, {grid, kThreads}, stream, tile);
}

}  // namespace kith
