// Sixteen threads for each run, a lane of the canonical sum each: they hold the sums of every sixteenth column in
// registers, and the centre in shared memory, so that a value is read and widened once for both. Runs are not equally
// long, so a block is one warp: what the short ones held is free at once. Bound by the reads of the rows.
#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/assign/centre_sums_cuda.hpp"
#include "kernels/distance/canonical.hpp"

#include <cuda_fp16.h>

#include <cstddef>

namespace kith {
namespace {

constexpr int kThreads = 32;
constexpr int kRuns = kThreads / kCanonicalLanes;  // of a block

__device__ double widened(float value) { return static_cast<double>(value); }
__device__ double widened(Half value) { return static_cast<double>(__half2float(__ushort_as_half(value.bits))); }
__device__ double widened(BFloat16 value) { return static_cast<double>(value); }
__device__ double widened(uint8_t value) { return static_cast<double>(value); }
__device__ double widened(int8_t value) { return static_cast<double>(value); }

// kColumns of each thread, all of them or up to so many.
template <int kColumns, bool kAll, typename X>
__global__ void __launch_bounds__(kThreads, kColumns > 32 ? 12 : 16)
    run_sums_and_keys_kernel(SumsTask task, SumBlocks blocks, const uint32_t* order) {
  extern __shared__ double shared[];
  const int lane = static_cast<int>(threadIdx.x) % kCanonicalLanes;
  const unsigned threads = 0xFFFFu << (threadIdx.x % 32 / kCanonicalLanes * kCanonicalLanes);
  const int64_t run = static_cast<int64_t>(blockIdx.x) * kRuns + threadIdx.x / kCanonicalLanes;
  if (run >= blocks.count * blocks.clusters) return;
  const int64_t start = task.runs.starts[run];
  const int64_t end = task.runs.starts[run + 1];
  if (start == end) return;
  const auto cols = static_cast<int>(task.cols);
  const bool goes_on = blocks.continues && run < blocks.clusters;
  double* const centre = shared + threadIdx.x / kCanonicalLanes * (kColumns * kCanonicalLanes) + lane;
  const float* const from = task.centres + run % blocks.clusters * task.cols;
  double sums[kColumns];
  KITH_UNROLL
  for (int i = 0; i < kColumns; ++i) {
    const int col = i * kCanonicalLanes + lane;
    sums[i] = goes_on && (kAll || col < cols) ? task.sums.open[run * task.cols + col] : 0.0;
    centre[i * kCanonicalLanes] = kAll || col < cols ? static_cast<double>(from[col]) : 0.0;
  }
  const X* const data = static_cast<const X*>(task.rows.data) + lane;
  const auto load = [&](uint32_t row, X(&values)[kColumns]) {
    const X* const from_row = data + int64_t{row} * task.rows.stride;
    KITH_UNROLL
    for (int i = 0; i < kColumns; ++i) {
      values[i] =
          kAll || i * kCanonicalLanes + lane < cols ? from_row[i * kCanonicalLanes] : X{};  // zeros change nothing
    }
  };
  const auto add = [&](uint32_t row, const X(&values)[kColumns]) {
    double key = 0;
    KITH_UNROLL
    for (int i = 0; i < kColumns; ++i) {
      const double value = widened(values[i]);
      sums[i] += value;
      key = canonical_step<KeyKind::squared_l2>(key, value, centre[i * kCanonicalLanes], 0, 0);
    }
    KITH_UNROLL
    for (int apart = kCanonicalLanes / 2; apart > 0; apart /= 2) {
      key += __shfl_down_sync(threads, key, static_cast<unsigned>(apart), kCanonicalLanes);
    }
    if (lane == 0) task.keys[row] = key_of_ordered(ordered_key(canonical_key<KeyKind::squared_l2>(key, 0, 0)));
  };
  if constexpr (kColumns <= 16) {  // room for the next row's values while this one's are added
    X values[kColumns];
    uint32_t row = order[start];
    uint32_t next = start + 1 < end ? order[start + 1] : row;
    load(row, values);
    for (int64_t at = start; at < end; ++at) {
      X ahead[kColumns] = {};
      const uint32_t after = at + 2 < end ? order[at + 2] : next;
      if (at + 1 < end) load(next, ahead);
      add(row, values);
      KITH_UNROLL
      for (int i = 0; i < kColumns; ++i) values[i] = ahead[i];
      row = next;
      next = after;
    }
  } else {
    const auto prefetch = [&](int64_t at) {
      if (at >= end) return;
      const auto* const row = vectors<std::byte>(data - lane + int64_t{order[at]} * task.rows.stride);
      constexpr int kLine = 128;
      for (int byte = lane * kLine; byte < cols * static_cast<int>(sizeof(X)); byte += kCanonicalLanes * kLine) {
        ptx::prefetch(row + byte);
      }
    };
    prefetch(start + 1);
    for (int64_t at = start; at < end; ++at) {
      prefetch(at + 2);
      const uint32_t row = order[at];
      X values[kColumns];
      load(row, values);
      add(row, values);
    }
  }
  KITH_UNROLL
  for (int i = 0; i < kColumns; ++i) {
    const int col = i * kCanonicalLanes + lane;
    if (kAll || col < cols) task.runs.sums[run * task.cols + col] = sums[i];
  }
  if (lane == 0) {
    const double before = goes_on ? task.sums.open[blocks.clusters * task.cols + run] : 0.0;
    task.runs.weights[run] = before + static_cast<double>(end - start);  // whole numbers: exact
  }
}

template <int kColumns>
void launch_columns(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order, cudaStream_t stream) {
  const int64_t grid = divide_up(blocks.count * blocks.clusters, kRuns);
  constexpr int kBytes = kRuns * kColumns * kCanonicalLanes * 8;
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    const auto kernel = task.cols == kColumns * kCanonicalLanes ? run_sums_and_keys_kernel<kColumns, true, X>
                                                                : run_sums_and_keys_kernel<kColumns, false, X>;
    KITH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    launch(kernel, Grid::of(grid, kThreads).with_shared(kBytes), stream, task, blocks, order);
  });
}

}  // namespace

void launch_run_sums_and_keys(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order,
                              cudaStream_t stream) {
  const int64_t columns = divide_up(task.cols, kCanonicalLanes);
  static_assert(kMostKeyCols == 49 * kCanonicalLanes);
  if (columns <= 8) return launch_columns<8>(task, blocks, order, stream);
  if (columns <= 16) return launch_columns<16>(task, blocks, order, stream);
  if (columns <= 32) return launch_columns<32>(task, blocks, order, stream);
  launch_columns<49>(task, blocks, order, stream);
}

}  // namespace kith
