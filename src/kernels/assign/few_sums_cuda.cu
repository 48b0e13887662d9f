// The sums of centre_sums_cuda.hpp where centres are few: nothing is sorted beyond a block of rows, and that in shared
// memory. A block of threads has a block of rows: it lists them by centre, in their order, then a thread for each
// centre and column adds up its rows. Those that are added are read from the cache for the most part. A second kernel
// adds the blocks' sums in order.
#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/host_array.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "kernels/assign/centre_sums_cuda.hpp"
#include "kernels/assign/few_centre_screen.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kAhead = 32;         // values that are read before they are added
constexpr int kWeightedAhead = 8;  // the same where each has a weight
constexpr int kAddSums = 32;       // of a block of threads, so that few are on many multiprocessors
constexpr int kPartials = 128;     // of each, in shared memory at a time
static_assert(sum_block(kFewCentres) <= 1 << 16, "the places of a block's rows are 16 bits");

// In shared memory: where each centre's rows begin, how many each warp has of them, and the rows by centre.
struct BlockList {
  uint32_t* starts;  // centres + 1
  uint32_t* counts;  // kWarps x centres
  uint16_t* order;   // sum_block
};
constexpr int64_t block_list_words(int64_t centres) { return centres + 1 + kWarps * centres; }  // before the order
constexpr int64_t block_list_bytes(int64_t centres) {
  return array_bytes<uint32_t>(block_list_words(centres)) + array_bytes<uint16_t>(sum_block(centres));
}

// Lists the `count` rows from `labels` on, stably. Each warp has its own run of them.
__device__ void list_rows(const int32_t* labels, int count, int centres, const BlockList& list) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int each = (count + kThreads - 1) / kThreads * 32;
  const int first = warp * each;
  const int end = first + each < count ? first + each : count;
  uint32_t* const mine = list.counts + warp * centres;
  for (int i = static_cast<int>(threadIdx.x); i < kWarps * centres; i += kThreads) list.counts[i] = 0;
  __syncthreads();
  for (int at = first; at < end; at += 32) {
    const int label = at + lane < end ? labels[at + lane] : -1;
    const unsigned same = __match_any_sync(kAllLanes, label);
    if (label >= 0 && lane == __ffs(static_cast<int>(same)) - 1) mine[label] += static_cast<uint32_t>(__popc(same));
    __syncwarp();
  }
  __syncthreads();
  // Exclusive sums: over the warps of each centre, then over the centres.
  for (int c = static_cast<int>(threadIdx.x); c < centres; c += kThreads) {
    uint32_t before = 0;
    for (int w = 0; w < kWarps; ++w) {
      const uint32_t some = list.counts[w * centres + c];
      list.counts[w * centres + c] = before;
      before += some;
    }
    list.starts[c + 1] = before;
  }
  if (threadIdx.x == 0) list.starts[0] = 0;
  __syncthreads();
  if (warp == 0) {
    uint32_t before = 0;
    for (int c = 0; c < centres; c += 32) {
      const uint32_t sum = warp_inclusive(c + lane < centres ? list.starts[c + lane + 1] : 0);
      if (c + lane < centres) list.starts[c + lane + 1] = before + sum;
      before += __shfl_sync(kAllLanes, sum, 31);
    }
  }
  __syncthreads();
  for (int at = first; at < end; at += 32) {
    const int label = at + lane < end ? labels[at + lane] : -1;
    const unsigned same = __match_any_sync(kAllLanes, label);
    const auto rank = static_cast<uint32_t>(__popc(same & ((1u << lane) - 1)));
    uint32_t before = 0;
    if (label >= 0) {
      before = mine[label];
      list.order[list.starts[label] + before + rank] = static_cast<uint16_t>(at + lane);
    }
    __syncwarp();
    if (label >= 0 && rank == 0) mine[label] = before + static_cast<uint32_t>(__popc(same));
    __syncwarp();
  }
  __syncthreads();
}

// Block (b, part): every gridDim.y-th set of kThreads sums of block b.
template <typename X>
__global__ void __launch_bounds__(kThreads) few_sums_kernel(SumsTask task, SumBlocks blocks) {
  extern __shared__ __align__(16) uint32_t memory[];
  const int centres = static_cast<int>(blocks.clusters);
  const BlockList list{memory, memory + centres + 1, vectors<uint16_t>(memory + block_list_words(centres))};
  const int64_t block = blockIdx.x;
  const int64_t begins = (blocks.first / blocks.size + block) * blocks.size - blocks.first;
  const int64_t low = begins > 0 ? begins : 0;
  const int64_t high = begins + blocks.size < task.rows.count ? begins + blocks.size : task.rows.count;
  list_rows(task.labels + low, static_cast<int>(high - low), centres, list);

  const bool goes_on = blocks.continues && block == 0;
  const auto cols = static_cast<int>(task.cols);
  const X* const data = static_cast<const X*>(task.rows.data) + low * task.rows.stride;
  const float* const weights = task.weights == nullptr ? nullptr : task.weights + low;
  // A sum of each centre and column, then the weights of the centres.
  for (int i = static_cast<int>(blockIdx.y * kThreads + threadIdx.x); i < centres * (cols + 1);
       i += static_cast<int>(gridDim.y) * kThreads) {
    const bool weighs = i >= centres * cols;
    const int centre = weighs ? i - centres * cols : i / cols;
    const X* const column = data + (weighs ? 0 : i - centre * cols);
    const int start = static_cast<int>(list.starts[centre]);
    const int end = static_cast<int>(list.starts[centre + 1]);
    double sum = goes_on ? task.sums.open[i] : 0.0;
    if (weighs && weights == nullptr) {
      sum += static_cast<double>(end - start);  // whole numbers: exact
    } else if (weights == nullptr) {
      for (int at = start; at < end; at += kAhead) {
        X values[kAhead];
        KITH_UNROLL
        for (int a = 0; a < kAhead; ++a) {
          values[a] = column[list.order[at + a < end ? at + a : end - 1] * task.rows.stride];
        }
        KITH_UNROLL
        for (int a = 0; a < kAhead; ++a) {
          if (at + a < end) sum += static_cast<double>(static_cast<float>(values[a]));
        }
      }
    } else {
      for (int at = start; at < end; at += kWeightedAhead) {
        double values[kWeightedAhead];
        KITH_UNROLL
        for (int a = 0; a < kWeightedAhead; ++a) {
          const int row = list.order[at + a < end ? at + a : end - 1];
          const double value = weighs ? 1.0 : static_cast<double>(static_cast<float>(column[row * task.rows.stride]));
          values[a] = static_cast<double>(weights[row]) * value;  // exact
        }
        KITH_UNROLL
        for (int a = 0; a < kWeightedAhead; ++a) {
          if (at + a < end) sum += values[a];
        }
      }
    }
    double* const out =
        weighs ? task.runs.weights + block * centres + centre : task.runs.sums + (block * centres) * task.cols + i;
    *out = sum;
  }
}

// A lane for each centre and column; the ones after the last column have the weights. All warps read the next partial
// sums while one adds these, in order.
__global__ void __launch_bounds__(kThreads)
    add_few_kernel(int64_t cols, SumBlocks blocks, RunSums runs, DeviceSums sums) {
  __shared__ double partials[kPartials][kAddSums];
  constexpr int kReads = kPartials / kWarps;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kAddSums + lane;
  const bool real = i < blocks.clusters * (cols + 1);
  const bool weighs = i >= blocks.clusters * cols;
  const double* const values = weighs ? runs.weights + (i - blocks.clusters * cols) : runs.sums + i;
  const int64_t step = weighs ? blocks.clusters : blocks.clusters * cols;
  const int64_t whole = blocks.stays_open ? blocks.count - 1 : blocks.count;
  double total = real && warp == 0 ? sums.totals[i] : 0.0;
  double next[kReads];
  const auto read = [&](int64_t first) {
    KITH_UNROLL
    for (int r = 0; r < kReads; ++r) {
      const int64_t block = first + r * kWarps + warp;
      next[r] = real && block < whole ? values[block * step] : 0.0;
    }
  };
  read(0);
  for (int64_t first = 0; first < whole; first += kPartials) {
    KITH_UNROLL
    for (int r = 0; r < kReads; ++r) partials[r * kWarps + warp][lane] = next[r];
    __syncthreads();
    read(first + kPartials);
    if (warp == 0) {
      const int count = static_cast<int>(whole - first < kPartials ? whole - first : kPartials);
#pragma unroll 16
      for (int block = 0; block < count; ++block) total += partials[block][lane];
    }
    __syncthreads();
  }
  if (!real || warp != 0) return;
  sums.totals[i] = total;
  if (blocks.stays_open) sums.open[i] = values[whole * step];
}

}  // namespace

void launch_add_few(const SumsTask& task, int multiprocessors, cudaStream_t stream) {
  if (task.rows.count == 0) return;
  const SumBlocks blocks = sum_blocks_of(task);
  const int64_t sums = task.clusters * (task.cols + 1);
  constexpr int64_t kBlocksEach = 4;
  const int64_t parts =
      std::clamp<int64_t>(divide_up(kBlocksEach * multiprocessors, blocks.count), 1, divide_up(sums, kThreads));
  const Grid grid{dim3(static_cast<unsigned>(blocks.count), static_cast<unsigned>(parts)), dim3(kThreads),
                  block_list_bytes(task.clusters)};
  visit_dtype(task.rows.dtype, [&](auto stored) {
    launch(few_sums_kernel<typename decltype(stored)::type>, grid, stream, task, blocks);
  });
  launch(add_few_kernel, Grid::of(divide_up(sums, kAddSums), kThreads), stream, task.cols, blocks, task.runs,
         task.sums);
}

}  // namespace kith
