// The hamming kernel (bit_tile_cuda.hpp).
#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "kernels/distance/bit_tile_cuda.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/tile_block_cuda.hpp"

namespace kith {
namespace {

__global__ void __launch_bounds__(kBitThreads) bit_distance_kernel(const __grid_constant__ DistanceTask task) {
  __shared__ BitTileShared shared;
  bit_tile(TileBlock(), shared, task, static_cast<int64_t>(blockIdx.y) * kBitTile,
           static_cast<int64_t>(blockIdx.x) * kBitTile);
}

}  // namespace

void launch_bit_distance(const DistanceTask& task, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(divide_up(task.rows.count, kBitTile)),
                  static_cast<unsigned>(divide_up(task.queries.count, kBitTile)));
  launch(bit_distance_kernel, {grid, kBitThreads}, stream, task);
}

}  // namespace kith
