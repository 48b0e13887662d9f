#include "kernels/distance/order_keys_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/error.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

struct Order {
  __device__ uint32_t operator()(uint32_t distance) const { return ordered_key(__uint_as_float(distance)); }
};

struct Unit {
  bool larger_nearer;
  __device__ uint32_t operator()(uint32_t ordered) const {
    const float key = key_of_ordered(ordered);
    return __float_as_uint(larger_nearer ? 0.0f - key : key);  // never -0
  }
};

template <typename Change>
__global__ void __launch_bounds__(kThreads) change_tile_kernel(KeyTile tile, Change change) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= tile.rows) return;
  for (int64_t query = blockIdx.y; query < tile.queries; query += gridDim.y) {
    uint32_t* const place = tile.keys + query * tile.stride + row;
    *place = change(*place);
  }
}

template <typename Change>
void launch_change(const KeyTile& tile, const Change& change, cudaStream_t stream) {
  if (tile.queries == 0 || tile.rows == 0) return;
  constexpr int64_t kMostQueries = 1024;
  const dim3 grid(static_cast<unsigned>(divide_up(tile.rows, kThreads)),
                  static_cast<unsigned>(tile.queries < kMostQueries ? tile.queries : kMostQueries));
  change_tile_kernel<<<grid, kThreads, 0, stream>>>(tile, change);
  KITH_CUDA_CHECK_LAUNCH("change_tile_kernel");
}

}  // namespace

void launch_order_keys(const KeyTile& tile, cudaStream_t stream) { launch_change(tile, Order{}, stream); }

void launch_unit_distances(Metric metric, const KeyTile& tile, cudaStream_t stream) {
  launch_change(tile, Unit{larger_is_nearer(metric)}, stream);
}

}  // namespace kith
