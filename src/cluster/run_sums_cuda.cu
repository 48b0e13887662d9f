// A warp for each run; a lane has four neighbouring columns of every 128. Keys want sixteen columns apart in one
// thread: eight rows at a time pass through shared memory, and four threads for each row go on with its canonical sum.
#include "cluster/run_sums_cuda.hpp"

#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/product/load_four_cuda.hpp"
#include "kernels/product/operand_layout.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kSlabCols = 128;  // of a warp, four a lane
constexpr int kAhead = 8;       // rows that are read before they are added
constexpr unsigned kWarp = 0xFFFFFFFFu;
constexpr int kRowThreads = 4;
constexpr int kLanes = kCanonicalLanes / kRowThreads;
constexpr int kMostSlabs = static_cast<int>(kMostKeyCols / kSlabCols);
constexpr int kPitch = kSlabCols + 16;  // so that eight threads of two rows read all banks

// A warp for each run and slab of columns.
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

// The same for up to kSlabs x 128 columns, with keys.
template <bool kProduct, int kSlabs, typename X>
__global__ void __launch_bounds__(kThreads, 2)
    run_sums_and_keys_kernel(SumsTask task, SumBlocks blocks, const uint32_t* order) {
  __shared__ __align__(16) float shared[kThreads / 32][kAhead][kPitch];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int key_row = lane / kRowThreads;
  const int key_col = lane % kRowThreads * kLanes;
  float(&slab)[kAhead][kPitch] = shared[threadIdx.x / 32];
  const int64_t run = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (run >= blocks.count * blocks.clusters) return;
  const int64_t start = task.runs.starts[run];
  const int64_t end = task.runs.starts[run + 1];
  if (start == end) return;
  const int64_t cols = task.cols;
  const X* const data = static_cast<const X*>(task.rows.data);
  const bool aligned = rows_aligned(data, task.rows.stride);
  const float* const centre = task.centres + run % blocks.clusters * cols;
  const bool centre_aligned = rows_aligned(task.centres, cols);
  const bool goes_on = blocks.continues && run < blocks.clusters;
  double sums[kSlabs][4] = {};
  double weight = 0;
  if (goes_on) {
    KITH_UNROLL
    for (int s = 0; s < kSlabs; ++s) {
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int64_t col = s * kSlabCols + 4 * lane + i;
        if (col < cols) sums[s][i] = task.sums.open[run * cols + col];
      }
    }
    weight = task.sums.open[blocks.clusters * cols + run];
  }
  for (int64_t at = start; at < end; at += kAhead) {
    const int count = static_cast<int>(end - at < kAhead ? end - at : kAhead);
    const uint32_t mine = order[at + (lane % kAhead < count ? lane % kAhead : 0)];
    const float my_weight = task.weights == nullptr ? 1.0f : task.weights[mine];
    double lanes[kLanes] = {};
    KITH_UNROLL
    for (int s = 0; s < kSlabs; ++s) {
      const int64_t col = s * kSlabCols + 4 * lane;
      if (s * kSlabCols >= cols) break;
      Four<X> ahead[kAhead] = {};
      KITH_UNROLL
      for (int a = 0; a < kAhead; ++a) {
        const uint32_t row = __shfl_sync(kWarp, mine, a);
        if (a < count) ahead[a] = load_four(data + int64_t{row} * task.rows.stride, col, cols, aligned);
      }
      KITH_UNROLL
      for (int a = 0; a < kAhead; ++a) {
        const auto w = static_cast<double>(__shfl_sync(kWarp, my_weight, a));
        Four<float> values;
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) values.values[i] = static_cast<float>(ahead[a].values[i]);
        *reinterpret_cast<Four<float>*>(&slab[a][4 * lane]) = values;
        if (a >= count) continue;
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) sums[s][i] += w * static_cast<double>(values.values[i]);
      }
      __syncwarp();
      KITH_UNROLL
      for (int first = 0; first < kSlabCols; first += kCanonicalLanes) {
        if (s * kSlabCols + first >= cols) break;
        const Four<float> values = *reinterpret_cast<const Four<float>*>(&slab[key_row][first + key_col]);
        const Four<float> with = load_four(centre, s * kSlabCols + first + key_col, cols, centre_aligned);
        KITH_UNROLL
        for (int i = 0; i < kLanes; ++i) {
          lanes[i] = canonical_step < kProduct
                         ? KeyKind::inner_product
                         : KeyKind::squared_l2 > (lanes[i], values.values[i], with.values[i], 0, 0);
        }
      }
      __syncwarp();
    }
    // canonical_tree: eight and four lanes apart are other threads' lanes.
    KITH_UNROLL
    for (int apart = kRowThreads / 2; apart > 0; apart /= 2) {
      KITH_UNROLL
      for (int i = 0; i < kLanes; ++i) {
        lanes[i] += __shfl_down_sync(kWarp, lanes[i], static_cast<unsigned>(apart), kRowThreads);
      }
    }
    lanes[0] += lanes[2];
    lanes[1] += lanes[3];
    const float key =
        canonical_key < kProduct ? KeyKind::inner_product : KeyKind::squared_l2 > (lanes[0] + lanes[1], 0, 0);
    const uint32_t row = __shfl_sync(kWarp, mine, key_row);
    if (lane % kRowThreads == 0 && key_row < count) task.keys[row] = key_of_ordered(ordered_key(key));
    KITH_UNROLL
    for (int a = 0; a < kAhead; ++a) {
      const auto w = static_cast<double>(__shfl_sync(kWarp, my_weight, a));
      if (a < count) weight += w;
    }
  }
  KITH_UNROLL
  for (int s = 0; s < kSlabs; ++s) {
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int64_t col = s * kSlabCols + 4 * lane + i;
      if (col < cols) task.runs.sums[run * cols + col] = sums[s][i];
    }
  }
  if (lane == 0) task.runs.weights[run] = weight;
}

unsigned run_blocks(const SumBlocks& blocks) {
  return static_cast<unsigned>(divide_rounding_up(blocks.count * blocks.clusters, kThreads / 32));
}

}  // namespace

void launch_run_sums(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order, cudaStream_t stream) {
  const dim3 grid(run_blocks(blocks), static_cast<unsigned>(divide_rounding_up(task.cols, kSlabCols)));
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    run_sums_kernel<X>
        <<<grid, kThreads, 0, stream>>>(task.rows, task.cols, blocks, order, task.weights, task.runs, task.sums.open);
  });
  KITH_CUDA_CHECK_LAUNCH("run_sums_kernel");
}

void launch_run_sums_and_keys(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order,
                              cudaStream_t stream) {
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    const auto kernel =
        task.cols <= kSlabCols
            ? (task.product ? run_sums_and_keys_kernel<true, 1, X> : run_sums_and_keys_kernel<false, 1, X>)
        : task.cols <= 3 * kSlabCols
            ? (task.product ? run_sums_and_keys_kernel<true, 3, X> : run_sums_and_keys_kernel<false, 3, X>)
            : (task.product ? run_sums_and_keys_kernel<true, kMostSlabs, X>
                            : run_sums_and_keys_kernel<false, kMostSlabs, X>);
    kernel<<<run_blocks(blocks), kThreads, 0, stream>>>(task, blocks, order);
  });
  KITH_CUDA_CHECK_LAUNCH("run_sums_and_keys_kernel");
}

}  // namespace kith
