// The canonical kernel, for every kind of key that is summed in lanes. A block computes a tile
// (distance_tile_cuda.hpp).
#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/distance_tile_cuda.hpp"
#include "kernels/distance/tile_block_cuda.hpp"

namespace kith {
namespace {

// Two blocks on a multiprocessor leave a thread 255 registers, of which the accumulators take 128.
template <KeyKind kStep>
__global__ void __launch_bounds__(kTileThreads, 2) lane_distance_kernel(const __grid_constant__ DistanceTask task) {
  __shared__ DistanceTileShared shared;
  distance_tile<kStep>(TileBlock(), shared, task, static_cast<int64_t>(blockIdx.y) * kTileQueries,
                       static_cast<int64_t>(blockIdx.x) * kTileRows);
}

}  // namespace

void launch_lane_distance(const DistanceTask& task, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(divide_up(task.rows.count, kTileRows)),
                  static_cast<unsigned>(divide_up(task.queries.count, kTileQueries)));
  visit_step(task.kind,
             [&](auto tag) { launch(lane_distance_kernel<tag.kind>, {grid, kTileThreads}, stream, task); });
}

}  // namespace kith
