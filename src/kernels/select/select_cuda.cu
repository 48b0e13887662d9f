// One block per query runs the cores of select_block_cuda.hpp and sort_block_cuda.hpp.
#include "kernels/select/select_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "kernels/select/cuda_block.hpp"
#include "kernels/select/select_block_cuda.hpp"
#include "kernels/select/sort_block_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) select_kernel(DeviceLists lists, DeviceKeyTile tile, int64_t have) {
  __shared__ CudaBlock<kThreads>::Shared shared;
  const int64_t query = blockIdx.x;
  CudaBlock<kThreads> block(shared);
  const SelectTask task{lists.neighbors + query * lists.k,
                        lists.bounds + query,
                        tile.keys + query * tile.stride,
                        tile.rows,
                        have,
                        lists.k,
                        static_cast<uint32_t>(tile.first_row),
                        tile.numbers};
  BlockSelector<CudaBlock<kThreads>>(block, task).run();
}

__global__ void __launch_bounds__(kThreads) sort_kernel(DeviceLists lists, int64_t have) {
  __shared__ CudaBlock<kThreads>::Shared shared;
  CudaBlock<kThreads> block(shared);
  sort_block(block, lists.neighbors + blockIdx.x * lists.k, have);
}

constexpr int kOrderThreads = 256;

__global__ void __launch_bounds__(kOrderThreads) order_keys_kernel(KeyTile tile) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kOrderThreads + threadIdx.x;
  if (row >= tile.rows) return;
  for (int64_t query = blockIdx.y; query < tile.queries; query += gridDim.y) {
    uint32_t* const place = tile.keys + query * tile.stride + row;
    *place = ordered_key(__uint_as_float(*place));
  }
}

}  // namespace

void launch_select(const DeviceLists& lists, const DeviceKeyTile& tile, int64_t rows_seen, cudaStream_t stream) {
  if (tile.rows == 0) return;
  launch(select_kernel, Grid::of(lists.queries, kThreads), stream, lists, tile, std::min(rows_seen, lists.k));
}

void launch_sort(const DeviceLists& lists, int64_t rows_seen, cudaStream_t stream) {
  if (rows_seen == 0) return;
  launch(sort_kernel, Grid::of(lists.queries, kThreads), stream, lists, std::min(rows_seen, lists.k));
}

void launch_order_keys(const KeyTile& tile, cudaStream_t stream) {
  constexpr int64_t kMostQueries = 1024;
  const int64_t queries = std::min(tile.queries, kMostQueries);
  launch(order_keys_kernel, Grid::of(divide_up(tile.rows, kOrderThreads), queries, kOrderThreads), stream, tile);
}

}  // namespace kith
