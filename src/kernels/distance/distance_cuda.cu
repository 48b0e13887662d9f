// The kernels that run a tile's core (distance_tile_cuda.hpp) in every block, and the choice among these,
// certain_distance_cuda.cu and few_queries_cuda.cu.
#include "kernels/distance/distance_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "kernels/distance/distance_tile_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"

namespace kith {
namespace {

// Two blocks on a multiprocessor leave a thread 255 registers, of which the accumulators take 128.
template <KeyKind kStep>
__global__ void __launch_bounds__(kTileThreads, 2) lane_distance_kernel(const __grid_constant__ DistanceTask task) {
  __shared__ DistanceTileShared shared;
  distance_tile<kStep>(TileBlock(), shared, task, static_cast<int64_t>(blockIdx.y) * kTileQueries,
                       static_cast<int64_t>(blockIdx.x) * kTileRows);
}

template <KeyKind kStep, int kLanes>
__global__ void __launch_bounds__(kFewThreads) few_columns_kernel(const __grid_constant__ DistanceTask task) {
  __shared__ FewColumnsShared<kLanes> shared;
  few_columns_tile<kStep, kLanes>(TileBlock(), shared, task, static_cast<int64_t>(blockIdx.y) * kFewQueries,
                                  static_cast<int64_t>(blockIdx.x) * kFewThreads);
}

__global__ void __launch_bounds__(kBitThreads) bit_distance_kernel(const __grid_constant__ DistanceTask task) {
  __shared__ BitTileShared shared;
  bit_tile(TileBlock(), shared, task, static_cast<int64_t>(blockIdx.y) * kBitTile,
           static_cast<int64_t>(blockIdx.x) * kBitTile);
}

Grid grid_of_tiles(const DistanceTask& task, int64_t queries, int64_t rows, int threads) {
  return Grid::of(divide_up(task.rows.count, rows), divide_up(task.queries.count, queries), threads);
}

// Up to this many steps the lane kernel is as fast as the second kernel that the matrix units need; fewer if rows are
// read value by value.
constexpr int64_t kFewSteps = int64_t{1} << 23;
constexpr int64_t kFewUnevenSteps = int64_t{1} << 21;

bool multiplies_doubles() {
  int device = 0;
  int major = 0;
  KITH_CUDA_CHECK(cudaGetDevice(&device));
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return has_fast_doubles(10 * major);
}

}  // namespace

void launch_lane_distance(const DistanceTask& task, cudaStream_t stream) {
  const Grid grid = grid_of_tiles(task, kTileQueries, kTileRows, kTileThreads);
  visit_step(task.kind, [&](auto tag) { launch(lane_distance_kernel<tag.kind>, grid, stream, task); });
}

void launch_few_columns_distance(const DistanceTask& task, cudaStream_t stream) {
  visit_step(task.kind, [&](auto tag) {
    const auto kernel = task.cols <= 2   ? few_columns_kernel<tag.kind, 2>
                        : task.cols <= 4 ? few_columns_kernel<tag.kind, 4>
                        : task.cols <= 8 ? few_columns_kernel<tag.kind, 8>
                                         : few_columns_kernel<tag.kind, 16>;
    launch(kernel, grid_of_tiles(task, kFewQueries, kFewThreads, kFewThreads), stream, task);
  });
}

void launch_bit_distance(const DistanceTask& task, cudaStream_t stream) {
  launch(bit_distance_kernel, grid_of_tiles(task, kBitTile, kBitTile, kBitThreads), stream, task);
}

void launch_distance(const DistanceTask& task, cudaStream_t stream) {
  if (task.queries.count == 0 || task.rows.count == 0) return;
  if (suits_few_queries(task)) return launch_few_queries_distance(task, stream);
  const int64_t few = task.cols % 4 == 0 && task.rows.stride % 4 == 0 ? kFewSteps : kFewUnevenSteps;
  const bool few_steps = task.queries.count * task.rows.count <= few / task.cols;
  if (is_product(task.kind) && task.cols > kFewColumns && !few_steps && multiplies_doubles()) {
    return launch_certain_distance(task, stream);  // checks the rows itself
  }
  if (task.first_bad != nullptr) launch_inspect_rows(task.rows, task.cols, {.first_bad = task.first_bad}, stream);
  if (task.kind == KeyKind::hamming) return launch_bit_distance(task, stream);
  if (task.cols <= kFewColumns) return launch_few_columns_distance(task, stream);
  launch_lane_distance(task, stream);
}

}  // namespace kith
