// The distance kernel, for every pair of dtypes and kind of key. A block computes a tile (distance_tile_cuda.hpp).
//
// Bound by the double-precision units: 2 instructions for each (query, row, column), where the tile's traffic from L2
// is 48 values for each 512 of them.
#include "kernels/distance/distance_cuda.hpp"

#include <kith/error.hpp>

#include "cuda/error.hpp"
#include "kernels/distance/distance_tile_cuda.hpp"

namespace kith {
namespace {

struct TileBlock {
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ void sync() const { __syncthreads(); }
};

// Three blocks on a multiprocessor leave a thread 168 registers, of which the accumulators take 128.
template <KeyKind kKind, typename Q, typename X>
__global__ void __launch_bounds__(kTileThreads, 3)
    distance_kernel(DeviceRowsRef<Q> queries, DeviceRowsRef<X> rows, int64_t cols, uint32_t* keys, int64_t key_stride) {
  __shared__ DistanceTileShared shared;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kTileRows;
  const int64_t first_query = static_cast<int64_t>(blockIdx.y) * kTileQueries;
  distance_tile<kKind>(TileBlock{}, shared, queries, rows, cols, first_query, first_row, keys, key_stride);
}

template <typename T>
DeviceRowsRef<T> typed(const DeviceRowsView& view) {
  return {static_cast<const T*>(view.data), view.stride, view.count, view.inverse_norms};
}

struct Launch {
  const DeviceRowsView& queries;
  const DeviceRowsView& rows;
  int64_t cols;
  uint32_t* keys;
  int64_t key_stride;
  cudaStream_t stream;

  template <KeyKind kKind, typename Q, typename X>
  void run() const {
    const dim3 grid(static_cast<unsigned>((rows.count + kTileRows - 1) / kTileRows),
                    static_cast<unsigned>((queries.count + kTileQueries - 1) / kTileQueries));
    distance_kernel<kKind, Q, X>
        <<<grid, kTileThreads, 0, stream>>>(typed<Q>(queries), typed<X>(rows), cols, keys, key_stride);
    KITH_CUDA_CHECK_LAUNCH("distance_kernel");
  }

  template <KeyKind kKind, typename Q>
  void with_rows() const {
    if (rows.dtype == DType::u8) return run<kKind, Q, uint8_t>();
    run<kKind, Q, float>();
  }

  template <KeyKind kKind>
  void with_queries() const {
    if (queries.dtype == DType::u8) return with_rows<kKind, uint8_t>();
    with_rows<kKind, float>();
  }
};

}  // namespace

void launch_distance(Metric metric, const DeviceRowsView& queries, const DeviceRowsView& rows, int64_t cols,
                     uint32_t* keys, int64_t key_stride, cudaStream_t stream) {
  if (queries.count == 0 || rows.count == 0) return;
  const Launch launch{queries, rows, cols, keys, key_stride, stream};
  switch (key_kind(metric)) {
    case KeyKind::l2: return launch.with_queries<KeyKind::l2>();
    case KeyKind::squared_l2: return launch.with_queries<KeyKind::squared_l2>();
    case KeyKind::inner_product: return launch.with_queries<KeyKind::inner_product>();
    case KeyKind::cosine: return launch.with_queries<KeyKind::cosine>();
  }
}

}  // namespace kith
