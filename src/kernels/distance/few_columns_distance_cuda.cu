// The kernel for few columns (few_columns_tile_cuda.hpp).
#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/few_columns_tile_cuda.hpp"
#include "kernels/distance/tile_block_cuda.hpp"

namespace kith {
namespace {

template <KeyKind kStep, int kLanes>
__global__ void __launch_bounds__(kFewThreads) few_columns_kernel(const __grid_constant__ DistanceTask task) {
  __shared__ FewColumnsShared<kLanes> shared;
  few_columns_tile<kStep, kLanes>(TileBlock(), shared, task, static_cast<int64_t>(blockIdx.y) * kFewQueries,
                                  static_cast<int64_t>(blockIdx.x) * kFewThreads);
}

}  // namespace

void launch_few_columns_distance(const DistanceTask& task, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(divide_up(task.rows.count, kFewThreads)),
                  static_cast<unsigned>(divide_up(task.queries.count, kFewQueries)));
  visit_step(task.kind, [&](auto tag) {
    const auto kernel = task.cols <= 2   ? few_columns_kernel<tag.kind, 2>
                        : task.cols <= 4 ? few_columns_kernel<tag.kind, 4>
                        : task.cols <= 8 ? few_columns_kernel<tag.kind, 8>
                                         : few_columns_kernel<tag.kind, 16>;
    launch(kernel, {grid, kFewThreads}, stream, task);
  });
}

}  // namespace kith
