// A warp for each run; a lane has four neighbouring columns of every 128, and reads some rows before it adds them.
#include "cluster/run_sums_cuda.hpp"

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "kernels/distance/load_four_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kSlabCols = 128;  // of a warp, four a lane
constexpr int kAhead = 8;       // rows that are read before they are added
constexpr unsigned kWarp = 0xFFFFFFFFu;

template <typename X>
__global__ void __launch_bounds__(kThreads)
    run_sums_kernel(DeviceRowsView rows, int64_t cols, SumBlocks blocks, const uint32_t* order, const float* weights,
                    RunSums runs, const double* open) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t run = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (run >= blocks.count * blocks.clusters) return;
  const int64_t start = runs.starts[run];
  const int64_t end = runs.starts[run + 1];
  if (start == end) return;
  const X* const data = static_cast<const X*>(rows.data);
  const bool aligned = rows_aligned(data, rows.stride);
  const int64_t col = static_cast<int64_t>(blockIdx.y) * kSlabCols + 4 * lane;
  const bool goes_on = blocks.continues && run < blocks.clusters;
  double sums[4] = {};
  double weight = 0;
  if (goes_on) {
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (col + i < cols) sums[i] = open[run * cols + col + i];
    }
    weight = open[blocks.clusters * cols + run];
  }
  for (int64_t at = start; at < end; at += 32) {
    const int count = static_cast<int>(end - at < 32 ? end - at : 32);
    const uint32_t mine = lane < count ? order[at + lane] : 0u;
    const float my_weight = weights == nullptr || lane >= count ? 1.0f : weights[mine];
    for (int j = 0; j < count; j += kAhead) {
      Four<X> ahead[kAhead] = {};
      KITH_UNROLL
      for (int a = 0; a < kAhead; ++a) {
        const uint32_t row = __shfl_sync(kWarp, mine, (j + a) % 32);
        if (j + a < count) ahead[a] = load_four(data + int64_t{row} * rows.stride, col, cols, aligned);
      }
      KITH_UNROLL
      for (int a = 0; a < kAhead; ++a) {
        const auto w = static_cast<double>(__shfl_sync(kWarp, my_weight, (j + a) % 32));
        if (j + a >= count) continue;
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) {
          sums[i] += w * static_cast<double>(static_cast<float>(ahead[a].values[i]));
        }
        weight += w;
      }
    }
  }
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (col + i < cols) runs.sums[run * cols + col + i] = sums[i];
  }
  if (col == 0) runs.weights[run] = weight;
}

}  // namespace

void launch_run_sums(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(divide_up(blocks.count * blocks.clusters, kThreads / 32)),
                  static_cast<unsigned>(divide_up(task.cols, kSlabCols)));
  visit_dtype(task.rows.dtype, [&](auto stored) {
    launch(run_sums_kernel<typename decltype(stored)::type>, {grid, dim3(kThreads)}, stream, task.rows, task.cols,
           blocks, order, task.weights, task.runs, task.sums.open);
  });
}

}  // namespace kith
