#include "kernels/assign/centre_sums_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/load_four_cuda.hpp"

#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <cub/device/device_radix_sort.cuh>

#include <algorithm>
#include <bit>
#include <cstddef>

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    sort_keys_kernel(const int32_t* labels, int64_t rows, SumBlocks blocks, uint32_t* keys, uint32_t* numbers) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows) return;
  const int64_t block = (blocks.first + i) / blocks.size - blocks.first / blocks.size;
  keys[i] = static_cast<uint32_t>(block * blocks.clusters + labels[i]);
  numbers[i] = static_cast<uint32_t>(i);
}

// The start of each run; empty runs start where the next one does.
__global__ void __launch_bounds__(kThreads)
    run_starts_kernel(const uint32_t* keys, int64_t rows, int64_t runs, uint32_t* starts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i > rows) return;
  const int64_t first = i == 0 ? 0 : int64_t{keys[i - 1]} + 1;
  const int64_t last = i == rows ? runs : int64_t{keys[i]};
  for (int64_t run = first; run <= last; ++run) starts[run] = static_cast<uint32_t>(i);
}

// A warp for each run; a lane has four neighbouring columns of every 128, and reads some rows before it adds them.
constexpr int kSlabCols = 128;  // columns per warp, four per lane
constexpr int kRowsAhead = 8;   // rows loaded ahead of their additions

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
    for (int j = 0; j < count; j += kRowsAhead) {
      Four<X> ahead[kRowsAhead] = {};
      KITH_UNROLL
      for (int a = 0; a < kRowsAhead; ++a) {
        const uint32_t row = __shfl_sync(kAllLanes, mine, (j + a) % 32);
        if (j + a < count) ahead[a] = load_four(data + int64_t{row} * rows.stride, col, cols, aligned);
      }
      KITH_UNROLL
      for (int a = 0; a < kRowsAhead; ++a) {
        const auto w = static_cast<double>(__shfl_sync(kAllLanes, my_weight, (j + a) % 32));
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

void launch_run_sums(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order, cudaStream_t stream) {
  const Grid grid =
      Grid::of(divide_up(blocks.count * blocks.clusters, kThreads / 32), divide_up(task.cols, kSlabCols), kThreads);
  visit_dtype(task.rows.dtype, [&]<typename T>(StoredAs<T>) {
    launch(run_sums_kernel<T>, grid, stream, task.rows, task.cols, blocks, order, task.weights, task.runs,
           task.sums.open);
  });
}

// With keys: sixteen threads for each run, a lane of the canonical sum each: they hold the sums of every sixteenth
// column in registers, and the centre in shared memory, so that a value is read and widened once for both. Runs are not
// equally long, so a block is one warp: what the short ones held is free at once. Bound by the reads of the rows.
//
// Wide rows have a whole warp: its second half goes on, one row behind, where the first has left a row's sum, so that
// the order of the columns stays, and each thread has half of the columns to hold. They come through shared memory.
//
// A long run would keep its threads busy long after all others are done, most of that time with keys, which need no
// order: its keys are computed side by side, and its sums by a thread for each column, which has many rows on their
// way.
constexpr int64_t kLongRun = 512;
constexpr int kLongThreads = 128;
constexpr int kLongAhead = 32;

__device__ double widened(float value) { return static_cast<double>(value); }
__device__ double widened(Half value) { return static_cast<double>(__half2float(__ushort_as_half(value.bits))); }
__device__ double widened(BFloat16 value) { return static_cast<double>(value); }
__device__ double widened(uint8_t value) { return static_cast<double>(value); }
__device__ double widened(int8_t value) { return static_cast<double>(value); }

// A run's sums and keys; one thread has every sixteenth column, kColumns of them or, unless kAll, at most that many.
template <int kColumns, bool kAll, typename X>
class RunColumns {
 public:
  // `first` is the first column. `centre`: what the sixteen threads share of it, this one's lane.
  __device__ RunColumns(const SumsTask& task, const SumBlocks& blocks, int64_t run, int first, double* centre)
      : task_(task),
        data_(static_cast<const X*>(task.rows.data) + first),
        centre_(centre),
        count_((static_cast<int>(task.cols) - first + kCanonicalLanes - 1) / kCanonicalLanes) {
    const bool goes_on = blocks.continues && run < blocks.clusters;
    const float* const from = task.centres + run % blocks.clusters * task.cols + first;
    const double* const open = task.sums.open + run * task.cols + first;
    KITH_UNROLL
    for (int i = 0; i < kColumns; ++i) {
      sums_[i] = goes_on && has(i) ? open[i * kCanonicalLanes] : 0.0;
      centre_[i * kCanonicalLanes] = has(i) ? static_cast<double>(from[i * kCanonicalLanes]) : 0.0;
    }
  }

  __device__ void load(uint32_t row, X (&values)[kColumns]) const {
    const X* const from = data_ + int64_t{row} * task_.rows.stride;
    KITH_UNROLL
    for (int i = 0; i < kColumns; ++i) values[i] = has(i) ? from[i * kCanonicalLanes] : X{};
  }

  // Adds a row, of which value(i) is the i-th of these columns, and its distance in them to `key`.
  template <typename Value>
  __device__ double add(const Value& value, double key) {
    KITH_UNROLL
    for (int i = 0; i < kColumns; ++i) {
      const double wide = widened(has(i) ? value(i) : X{});  // zeros change nothing
      sums_[i] += wide;
      key = canonical_step<KeyKind::squared_l2>(key, wide, centre_[i * kCanonicalLanes], 0, 0);
    }
    return key;
  }

  __device__ void write(double* sums) const {
    KITH_UNROLL
    for (int i = 0; i < kColumns; ++i) {
      if (has(i)) sums[i * kCanonicalLanes] = sums_[i];
    }
  }

 private:
  __device__ bool has(int i) const { return kAll || i < count_; }

  const SumsTask& task_;
  const X* const data_;
  double* const centre_;
  const int count_;
  double sums_[kColumns];
};

__device__ void write_key(const SumsTask& task, uint32_t row, double key, int lane, unsigned threads) {
  key = warp_sum<kCanonicalLanes>(key, threads);
  if (lane == 0) task.keys[row] = key_of_ordered(ordered_key(canonical_key<KeyKind::squared_l2>(key, 0, 0)));
}

__device__ void write_weight(const SumsTask& task, const SumBlocks& blocks, int64_t run, int64_t rows) {
  const bool goes_on = blocks.continues && run < blocks.clusters;
  const double before = goes_on ? task.sums.open[blocks.clusters * task.cols + run] : 0.0;
  task.runs.weights[run] = before + static_cast<double>(rows);  // whole numbers: exact
}

// A warp with two runs, sixteen threads each.
template <int kColumns, bool kAll, typename X>
__global__ void __launch_bounds__(32, 16)
    run_sums_and_keys_kernel(SumsTask task, SumBlocks blocks, const uint32_t* order) {
  __shared__ double centres[32 * kColumns];
  constexpr int kRuns = 32 / kCanonicalLanes;
  const int lane = static_cast<int>(threadIdx.x) % kCanonicalLanes;
  const unsigned threads = 0xFFFFu << (threadIdx.x % 32 / kCanonicalLanes * kCanonicalLanes);
  const int64_t run = static_cast<int64_t>(blockIdx.x) * kRuns + threadIdx.x / kCanonicalLanes;
  if (run >= blocks.count * blocks.clusters) return;
  const int64_t start = task.runs.starts[run];
  const int64_t end = task.runs.starts[run + 1];
  if (start == end || end - start >= kLongRun) return;
  RunColumns<kColumns, kAll, X> columns(task, blocks, run, lane,
                                        centres + threadIdx.x / kCanonicalLanes * (kColumns * kCanonicalLanes) + lane);
  X values[kColumns];
  uint32_t row = order[start];
  uint32_t next = start + 1 < end ? order[start + 1] : row;
  columns.load(row, values);
  for (int64_t at = start; at < end; ++at) {  // the next row is loaded while this one is added
    X ahead[kColumns] = {};
    const uint32_t after = at + 2 < end ? order[at + 2] : next;
    if (at + 1 < end) columns.load(next, ahead);
    write_key(task, row, columns.add([&](int i) { return values[i]; }, 0), lane, threads);
    KITH_UNROLL
    for (int i = 0; i < kColumns; ++i) values[i] = ahead[i];
    row = next;
    next = after;
  }
  columns.write(task.runs.sums + run * task.cols + lane);
  if (lane == 0) write_weight(task, blocks, run, end - start);
}

// Rows of a run on their way through shared memory, for one warp: a few are coming while one is read.
template <typename X>
class RowRing {
 public:
  static constexpr int kAhead = 2;
  // Beside those on their way there are the one that the first half of the warp has and the one of the second.
  static constexpr int kSlots = kAhead + 2;

  static __host__ __device__ int slot_bytes(int64_t cols) {
    return static_cast<int>(round_up(cols * static_cast<int64_t>(sizeof(X)), int64_t{16}));
  }

  __device__ RowRing(const SumsTask& task, std::byte* memory)
      : data_(static_cast<const X*>(task.rows.data)),
        stride_(task.rows.stride),
        cols_(static_cast<int>(task.cols)),
        bytes_(slot_bytes(task.cols)),
        memory_(memory),
        whole_(reinterpret_cast<uintptr_t>(task.rows.data) % 16 == 0 && stride_ * sizeof(X) % 16 == 0 &&
               cols_ * sizeof(X) % 16 == 0) {}

  // Begins to copy a row to the place of the i-th.
  __device__ void fetch(int64_t i, uint32_t row) const {
    const X* const from = data_ + int64_t{row} * stride_;
    const auto thread = static_cast<int>(threadIdx.x);
    X* const to = at(i);
    if (whole_) {
      constexpr int kValues = 16 / static_cast<int>(sizeof(X));
      for (int c = thread * kValues; c < cols_; c += 32 * kValues) __pipeline_memcpy_async(to + c, from + c, 16);
    } else {
      for (int c = thread; c < cols_; c += 32) to[c] = from[c];
    }
  }
  __device__ X* at(int64_t i) const { return vectors<X>(memory_ + i % kSlots * bytes_); }

 private:
  const X* const data_;
  const int64_t stride_;
  const int cols_;
  const int bytes_;
  std::byte* const memory_;
  const bool whole_;
};

// A warp with one run: each half has half of the columns, the first half one row ahead.
template <int kColumns, typename X>
__global__ void __launch_bounds__(32, kColumns <= 16   ? 16
                                      : kColumns <= 24 ? 12
                                      : kColumns <= 32 ? 8
                                                       : 6)
    wide_sums_and_keys_kernel(SumsTask task, SumBlocks blocks, const uint32_t* order) {
  extern __shared__ __align__(16) std::byte memory[];
  constexpr int kAhead = RowRing<X>::kAhead;
  const int lane = static_cast<int>(threadIdx.x) % kCanonicalLanes;
  const int half = static_cast<int>(threadIdx.x) / kCanonicalLanes;
  const int64_t run = blockIdx.x;
  const int64_t start = task.runs.starts[run];
  const int64_t count = task.runs.starts[run + 1] - start;
  if (count == 0 || count >= kLongRun) return;
  const uint32_t* const numbers = order + start;
  const int first = half * kColumns * kCanonicalLanes + lane;
  auto* const centre = vectors<double>(memory) + half * (kColumns * kCanonicalLanes) + lane;
  const RowRing<X> ring(task, memory + sizeof(double) * 32 * kColumns);
  KITH_UNROLL
  for (int i = 0; i < kAhead; ++i) {
    if (i < count) ring.fetch(i, numbers[i]);
    __pipeline_commit();
  }
  RunColumns<kColumns, false, X> columns(task, blocks, run, first, centre);
  double passed_on = 0;  // by the first half: the sum of the row that the second has next
  for (int64_t i = 0; i <= count; ++i) {
    __syncwarp();  // the row that is overwritten next has been read
    if (i + kAhead < count) ring.fetch(i + kAhead, numbers[i + kAhead]);
    __pipeline_commit();
    __pipeline_wait_prior(kAhead);
    __syncwarp();
    const int64_t mine = i - half;
    double key = half == 0 ? 0.0 : passed_on;
    if (mine >= 0 && mine < count) {
      const X* const values = ring.at(mine) + first;
      key = columns.add([&](int c) { return values[c * kCanonicalLanes]; }, key);
      if (half == 1) write_key(task, numbers[mine], key, lane, 0xFFFF0000u);
    }
    passed_on = __shfl_xor_sync(kAllLanes, key, kCanonicalLanes);
  }
  columns.write(task.runs.sums + run * task.cols + first);
  if (threadIdx.x == 0) write_weight(task, blocks, run, count);
}

// The sums of long runs: a block for each run and kLongThreads columns.
template <typename X>
__global__ void __launch_bounds__(kLongThreads)
    long_run_sums_kernel(SumsTask task, SumBlocks blocks, const uint32_t* order) {
  const int64_t run = blockIdx.x;
  const int64_t start = task.runs.starts[run];
  const int64_t end = task.runs.starts[run + 1];
  if (end - start < kLongRun) return;
  if (threadIdx.x == 0 && blockIdx.y == 0) write_weight(task, blocks, run, end - start);
  const int64_t col = static_cast<int64_t>(blockIdx.y) * kLongThreads + threadIdx.x;
  if (col >= task.cols) return;
  const X* const column = static_cast<const X*>(task.rows.data) + col;
  const auto load = [&](int64_t first, X (&values)[kLongAhead]) {
    KITH_UNROLL
    for (int i = 0; i < kLongAhead; ++i) {
      if (first + i < end) values[i] = column[int64_t{order[first + i]} * task.rows.stride];
    }
  };
  const bool goes_on = blocks.continues && run < blocks.clusters;
  double sum = goes_on ? task.sums.open[run * task.cols + col] : 0.0;
  X now[kLongAhead] = {};
  load(start, now);
  for (int64_t first = start; first < end; first += kLongAhead) {
    X next[kLongAhead] = {};
    load(first + kLongAhead, next);
    KITH_UNROLL
    for (int i = 0; i < kLongAhead; ++i) {
      if (first + i < end) sum += widened(now[i]);
      now[i] = next[i];
    }
  }
  task.runs.sums[run * task.cols + col] = sum;
}

// The keys of the rows in long runs: a thread finds out for a row, each half of its warp takes one of those found.
template <typename X>
__global__ void __launch_bounds__(kThreads)
    long_run_keys_kernel(SumsTask task, const uint32_t* runs, const uint32_t* order) {
  const int lane = static_cast<int>(threadIdx.x) % kCanonicalLanes;
  const int half = static_cast<int>(threadIdx.x) % 32 / kCanonicalLanes;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  uint32_t run = 0;
  bool is_long = false;
  if (i < task.rows.count) {
    run = runs[i];
    is_long = int64_t{task.runs.starts[run + 1]} - task.runs.starts[run] >= kLongRun;
  }
  uint32_t found = __ballot_sync(kAllLanes, is_long);
  if (found == 0) return;
  const uint32_t row = is_long ? order[i] : 0u;
  while (found != 0) {
    const int first = __ffs(static_cast<int>(found)) - 1;
    found &= found - 1;
    const int second = found != 0 ? __ffs(static_cast<int>(found)) - 1 : first;
    found &= found - 1;
    const uint32_t mine = __shfl_sync(kAllLanes, row, half == 0 ? first : second);
    const int64_t centre = __shfl_sync(kAllLanes, run, half == 0 ? first : second) % task.clusters;
    const X* const values = static_cast<const X*>(task.rows.data) + int64_t{mine} * task.rows.stride;
    const float* const centres = task.centres + centre * task.cols;
    double key = 0;
    for (int64_t col = lane; col < task.cols; col += kCanonicalLanes) {
      key = canonical_step<KeyKind::squared_l2>(key, widened(values[col]), static_cast<double>(centres[col]), 0, 0);
    }
    write_key(task, mine, key, lane, 0xFFFFu << (half * kCanonicalLanes));
  }
}

template <int kColumns>
void launch_columns(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order, cudaStream_t stream) {
  const int64_t grid = divide_up(blocks.count * blocks.clusters, 32 / kCanonicalLanes);
  visit_dtype(task.rows.dtype, [&]<typename X>(StoredAs<X>) {
    const auto kernel = task.cols == kColumns * kCanonicalLanes ? run_sums_and_keys_kernel<kColumns, true, X>
                                                                : run_sums_and_keys_kernel<kColumns, false, X>;
    launch(kernel, Grid::of(grid, 32), stream, task, blocks, order);
  });
}

template <int kColumns>
void launch_wide_columns(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order, cudaStream_t stream) {
  visit_dtype(task.rows.dtype, [&]<typename X>(StoredAs<X>) {
    const int64_t bytes = array_bytes<double>(32 * kColumns) + RowRing<X>::kSlots * RowRing<X>::slot_bytes(task.cols);
    launch(wide_sums_and_keys_kernel<kColumns, X>, Grid::of(blocks.count * blocks.clusters, 32).with_shared(bytes),
           stream, task, blocks, order);
  });
}

void launch_run_sums_and_keys(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order,
                              cudaStream_t stream) {
  const int64_t columns = divide_up(task.cols, kCanonicalLanes);
  static_assert(kMostKeyCols == 2 * 48 * kCanonicalLanes);
  if (columns <= 8) return launch_columns<8>(task, blocks, order, stream);
  if (columns <= 16) return launch_columns<16>(task, blocks, order, stream);
  if (columns <= 2 * 16) return launch_wide_columns<16>(task, blocks, order, stream);
  if (columns <= 2 * 24) return launch_wide_columns<24>(task, blocks, order, stream);
  if (columns <= 2 * 32) return launch_wide_columns<32>(task, blocks, order, stream);
  launch_wide_columns<48>(task, blocks, order, stream);
}

void launch_long_runs(const SumsTask& task, const SumBlocks& blocks, const uint32_t* runs, const uint32_t* order,
                      cudaStream_t stream) {
  const Grid sums = Grid::of(blocks.count * blocks.clusters, divide_up(task.cols, kLongThreads), kLongThreads);
  visit_dtype(task.rows.dtype, [&]<typename X>(StoredAs<X>) {
    launch(long_run_sums_kernel<X>, sums, stream, task, blocks, order);
    launch(long_run_keys_kernel<X>, Grid::over(task.rows.count, kThreads), stream, task, runs, order);
  });
}

// A thread for each centre and column; the one after the last column has the weights. Some runs' values are read before
// they are added, an empty one's too, which do not count.
__global__ void __launch_bounds__(kThreads)
    add_runs_kernel(int64_t cols, SumBlocks blocks, RunSums runs, DeviceSums sums) {
  constexpr int kAhead = 8;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= blocks.clusters * (cols + 1)) return;
  const bool weighs = i >= blocks.clusters * cols;
  const int64_t centre = weighs ? i - blocks.clusters * cols : i / cols;
  const double* const values = weighs ? runs.weights + centre : runs.sums + centre * cols + i % cols;
  const int64_t step = weighs ? blocks.clusters : blocks.clusters * cols;
  double total = sums.totals[i];
  double left_open = 0;
  for (int64_t first = 0; first < blocks.count; first += kAhead) {
    double partials[kAhead];
    bool empty[kAhead];
    KITH_UNROLL
    for (int a = 0; a < kAhead; ++a) {
      const int64_t block = first + a < blocks.count ? first + a : blocks.count - 1;
      const int64_t run = block * blocks.clusters + centre;
      empty[a] = runs.starts[run] == runs.starts[run + 1];
      partials[a] = values[block * step];
    }
    KITH_UNROLL
    for (int a = 0; a < kAhead; ++a) {
      const int64_t block = first + a;
      if (block >= blocks.count) break;
      double partial = empty[a] ? 0.0 : partials[a];
      if (empty[a] && block == 0 && blocks.continues) partial = sums.open[i];
      if (block == blocks.count - 1 && blocks.stays_open) {
        left_open = partial;
      } else {
        total += partial;
      }
    }
  }
  sums.totals[i] = total;
  if (blocks.stays_open) sums.open[i] = left_open;
}

// A block per centre: all threads read, one adds in order.
__global__ void __launch_bounds__(kThreads)
    objectives_kernel(const float* keys, const float* weights, int64_t rows, double* blocks) {
  __shared__ double terms[kSumBlock];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kSumBlock;
  const int count = static_cast<int>(rows - first < kSumBlock ? rows - first : kSumBlock);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const auto key = static_cast<double>(keys[first + i]);
    terms[i] = weights == nullptr ? key : static_cast<double>(weights[first + i]) * key;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  double sum = 0;
#pragma unroll 16
  for (int i = 0; i < count; ++i) sum += terms[i];
  blocks[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads) count_labels_kernel(const int32_t* labels, int64_t rows, uint32_t* counts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < rows) atomicAdd(&counts[labels[i]], 1u);
}

// Few labels, which many rows share: a block counts its rows before it adds them to the others'.
constexpr int64_t kFewLabels = 4096;
constexpr int64_t kRowsCounted = 16384;
__global__ void __launch_bounds__(kThreads)
    count_few_labels_kernel(const int32_t* labels, int64_t rows, int clusters, uint32_t* counts) {
  __shared__ uint32_t own[kFewLabels];
  for (int c = static_cast<int>(threadIdx.x); c < clusters; c += kThreads) own[c] = 0;
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kRowsCounted;
  const int64_t end = first + kRowsCounted < rows ? first + kRowsCounted : rows;
  for (int64_t i = first + threadIdx.x; i < end; i += kThreads) atomicAdd(&own[labels[i]], 1u);
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < clusters; c += kThreads) {
    if (own[c] > 0) atomicAdd(&counts[c], own[c]);
  }
}

cub::DoubleBuffer<uint32_t> both(uint32_t* const (&buffers)[2]) { return {buffers[0], buffers[1]}; }

// Stable sort by key; returns the index of the buffer with the result.
int sort_runs(const RunSums& runs, int64_t rows, int64_t run_count, cudaStream_t stream) {
  cub::DoubleBuffer<uint32_t> keys = both(runs.keys);
  cub::DoubleBuffer<uint32_t> numbers = both(runs.rows);
  const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(run_count - 1))));
  if (centre_sort_bytes_needed(rows, bits) > runs.sort_bytes) {
    throw InvalidState("sorting rows by centre needs more memory than was planned");
  }
  auto bytes = static_cast<size_t>(runs.sort_bytes);
  KITH_CUDA_CHECK(
      cub::DeviceRadixSort::SortPairs(runs.sort, bytes, keys, numbers, static_cast<int>(rows), 0, bits, stream));
  return keys.selector == 0 && numbers.selector == 0 ? 0 : keys.selector == numbers.selector ? 1 : -1;
}

}  // namespace

int64_t centre_sort_bytes_needed(int64_t rows, int bits) {
  cub::DoubleBuffer<uint32_t> keys;
  cub::DoubleBuffer<uint32_t> numbers;
  size_t bytes = 0;
  KITH_CUDA_CHECK(
      cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, numbers, static_cast<int>(rows), 0, bits, nullptr));
  return static_cast<int64_t>(bytes);
}

SumBlocks sum_blocks_of(const SumsTask& task) {
  const int64_t rows = task.rows.count;
  SumBlocks blocks;
  blocks.first = task.first;
  blocks.size = sum_block(task.clusters);
  blocks.clusters = task.clusters;
  blocks.count = (task.first + rows - 1) / blocks.size - task.first / blocks.size + 1;
  blocks.continues = task.first % blocks.size != 0;
  blocks.stays_open = !task.last && (task.first + rows) % blocks.size != 0;
  return blocks;
}

void launch_add_rows(const SumsTask& task, cudaStream_t stream) {
  const int64_t rows = task.rows.count;
  if (rows == 0) return;
  const SumBlocks blocks = sum_blocks_of(task);
  const int64_t run_count = blocks.count * task.clusters;

  launch(sort_keys_kernel, Grid::over(rows, kThreads), stream, task.labels, rows, blocks, task.runs.keys[0],
         task.runs.rows[0]);
  const int sorted = sort_runs(task.runs, rows, run_count, stream);
  if (sorted < 0) throw InvalidState("sorting rows by centre left keys and rows apart");
  launch(run_starts_kernel, Grid::over(rows + 1, kThreads), stream, task.runs.keys[sorted], rows, run_count,
         task.runs.starts);
  if (task.keys == nullptr) {
    launch_run_sums(task, blocks, task.runs.rows[sorted], stream);
  } else {
    launch_run_sums_and_keys(task, blocks, task.runs.rows[sorted], stream);
    if (rows >= kLongRun) launch_long_runs(task, blocks, task.runs.keys[sorted], task.runs.rows[sorted], stream);
  }
  launch(add_runs_kernel, Grid::over(task.clusters * (task.cols + 1), kThreads), stream, task.cols, blocks, task.runs,
         task.sums);
}

void launch_block_objectives(const float* keys, const float* weights, int64_t rows, double* blocks,
                             cudaStream_t stream) {
  launch(objectives_kernel, Grid::of(divide_up(rows, kSumBlock), kThreads), stream, keys, weights, rows, blocks);
}

void launch_count_labels(const int32_t* labels, int64_t rows, int64_t clusters, uint32_t* counts, cudaStream_t stream) {
  if (clusters <= kFewLabels) {
    launch(count_few_labels_kernel, Grid::of(divide_up(rows, kRowsCounted), kThreads), stream, labels, rows,
           static_cast<int>(clusters), counts);
  } else {
    launch(count_labels_kernel, Grid::over(rows, kThreads), stream, labels, rows, counts);
  }
}

}  // namespace kith
