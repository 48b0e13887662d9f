// The distance kernel, for every kind of key. A block computes a tile (distance_tile_cuda.hpp).
//
// Bound by the double-precision units: 2 instructions for each (query, row, column) of the metrics made of products,
// where the tile's traffic from L2 is 48 values for each 512 of them.
#include "kernels/distance/distance_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/error.hpp"
#include "kernels/distance/distance_tile_cuda.hpp"

namespace kith {
namespace {

struct TileBlock {
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ void sync() const { __syncthreads(); }
};

// Three blocks on a multiprocessor leave a thread 168 registers, of which the accumulators take 128.
template <KeyKind kKind>
__global__ void __launch_bounds__(kTileThreads, 3)
    distance_kernel(DeviceRowsView queries, DeviceRowsView rows, int64_t cols, uint32_t* keys, int64_t key_stride) {
  __shared__ DistanceTileShared shared;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kTileRows;
  const int64_t first_query = static_cast<int64_t>(blockIdx.y) * kTileQueries;
  distance_tile<kKind>(TileBlock{}, shared, queries, rows, cols, first_query, first_row, keys, key_stride);
}

}  // namespace

void launch_distance(Metric metric, const DeviceRowsView& queries, const DeviceRowsView& rows, int64_t cols,
                     uint32_t* keys, int64_t key_stride, cudaStream_t stream) {
  if (queries.count == 0 || rows.count == 0) return;
  const dim3 grid(static_cast<unsigned>(divide_up(rows.count, kTileRows)),
                  static_cast<unsigned>(divide_up(queries.count, kTileQueries)));
  visit_kind(key_kind(metric), [&](auto tag) {
    distance_kernel<tag.kind><<<grid, kTileThreads, 0, stream>>>(queries, rows, cols, keys, key_stride);
  });
  KITH_CUDA_CHECK_LAUNCH("distance_kernel");
}

}  // namespace kith
