#include "cluster/draw/plus_plus_steps_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/distance/canonical.hpp"

#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <cstddef>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kGroups = kThreads / kCanonicalLanes;
constexpr int kChunk = 128;  // columns of the trials in shared memory at a time
constexpr int kTakeThreads = 32 * kMostTrials;

// Adds up the sixteen lanes' values as canonical_tree does, half of them in each lane of a pair: in the end a lane has
// a sixteenth of the sums, and calls use(number, sum) for each.
template <int kApart, int kCount, typename Use>
__device__ __forceinline__ void join_lanes(const double (&values)[kCount], int first, int count, unsigned threads,
                                           const Use& use) {
  if constexpr (kApart == 0) {
    KITH_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if (i < count) use(first + i, values[i]);
    }
  } else {
    constexpr int kHalf = (kCount + 1) / 2;
    const bool upper = (threadIdx.x & kApart) != 0;
    double kept[kHalf];
    KITH_UNROLL
    for (int i = 0; i < kHalf; ++i) {
      const double low = values[i];
      const double high = i + kHalf < kCount ? values[i + kHalf < kCount ? i + kHalf : 0] : 0.0;
      const double theirs = __shfl_xor_sync(threads, upper ? low : high, kApart, kCanonicalLanes);
      kept[i] = (upper ? high : low) + theirs;
    }
    const int below = count < kHalf ? count : kHalf;
    join_lanes<kApart / 2>(kept, upper ? first + kHalf : first, upper ? count - below : below, threads, use);
  }
}

// A tile of rows has kGroups x kRows of them.
template <int kTrials, int kRows>
struct TryShared {
  static constexpr int kTileRows = kGroups * kRows;
  static constexpr int kRowRoom = kChunk + 4;  // so that the two groups of a warp read other banks

  float rows[2][kTileRows][kRowRoom];  // a chunk of a tile's columns; the next one is on its way
  float nearest[2][kTileRows];         // of a tile, and of the next
  double trials[kTrials][kChunk];
  float keys[kTrials][kTileRows];
  double steps[kTrials][kTileRows + 1];  // what each row adds to its segment
};

// Begins to copy a chunk of a tile's columns. Past the last row the last one is read again, and nothing of it is kept.
template <int kTrials, int kRows>
__device__ void fetch_rows(const PlusPlusRound& round, int64_t tile, int64_t col, int buffer,
                           TryShared<kTrials, kRows>& shared) {
  constexpr int kTileRows = TryShared<kTrials, kRows>::kTileRows;
  const int64_t first = tile * kTileRows;
  const int last =
      static_cast<int>(round.tree.rows - 1 - first < kTileRows - 1 ? round.tree.rows - 1 - first : kTileRows - 1);
  const int width = static_cast<int>(round.cols - col < kChunk ? round.cols - col : kChunk);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int row = static_cast<int>(threadIdx.x) / 32; row < kTileRows; row += kThreads / 32) {
    const float* const from = round.rows + (first + (row < last ? row : last)) * round.row_stride + col;
    float* const to = shared.rows[buffer][row];
    if (round.whole_vectors) {
      static_assert(kChunk == 32 * 4);
      if (4 * lane < width) __pipeline_memcpy_async(to + 4 * lane, from + 4 * lane, 4 * sizeof(float));
    } else {
      for (int c = lane; c < width; c += 32) __pipeline_memcpy_async(to + c, from + c, sizeof(float));
    }
  }
}

// The same for the distances of a tile.
template <int kTrials, int kRows>
__device__ void fetch_nearest(const PlusPlusRound& round, int64_t tile, int tile_buffer,
                              TryShared<kTrials, kRows>& shared) {
  constexpr int kTileRows = TryShared<kTrials, kRows>::kTileRows;
  if (round.first) return;
  const int64_t first = tile * kTileRows;
  const int last =
      static_cast<int>(round.tree.rows - 1 - first < kTileRows - 1 ? round.tree.rows - 1 - first : kTileRows - 1);
  const float* const nearest = round.distances + round.state->best * round.stride + first;
  for (int i = static_cast<int>(threadIdx.x); i <= last; i += kThreads) {
    __pipeline_memcpy_async(&shared.nearest[tile_buffer][i], nearest + i, sizeof(float));
  }
}

// Updates a tile's distances from its keys, and sums its
// segments. Rows past the last add zeros.
template <int kTrials, int kRows>
__device__ void finish_tile(const PlusPlusRound& round, int64_t tile, const float* nearest,
                            TryShared<kTrials, kRows>& shared) {
  constexpr int kTileRows = TryShared<kTrials, kRows>::kTileRows;
  constexpr int kSegments = kTileRows / kDrawFan;
  const int64_t first = tile * kTileRows;
  for (int i = static_cast<int>(threadIdx.x); i < round.trials * kTileRows; i += kThreads) {
    const int t = i / kTileRows;
    const int row = i % kTileRows;
    double step = 0;
    if (first + row < round.tree.rows) {
      const float key = shared.keys[t][row];
      const float before = round.first ? HUGE_VALF : nearest[row];
      const float distance = key < before ? key : before;
      round.distances[t * round.stride + first + row] = distance;
      step = static_cast<double>(distance);
      if (round.weights != nullptr) step *= static_cast<double>(round.weights[first + row]);
    }
    shared.steps[t][row] = step;
  }
  __syncthreads();
  const int i = static_cast<int>(threadIdx.x);
  const int64_t segment = first / kDrawFan + i % kSegments;
  if (i >= round.trials * kSegments || segment >= round.tree.segments) return;
  const double* const steps = shared.steps[i / kSegments] + i % kSegments * kDrawFan;
  round.segments[(i / kSegments * kDrawFan + segment % kDrawFan) * round.tree.blocks() + segment / kDrawFan] =
      sum_children([&](int j) { return steps[j]; }, kDrawFan);
}

// A thread's part of a chunk of the trials' columns, read while the chunk before is worked on.
template <int kTrials>
class TrialChunk {
 public:
  __device__ void fetch(const PlusPlusRound& round, int64_t col) {
    KITH_UNROLL
    for (int n = 0; n < kEach; ++n) {
      const int i = static_cast<int>(threadIdx.x) + n * kThreads;
      const bool real = i / kChunk < round.trials && col + i % kChunk < round.cols;
      values_[n] = real ? round.rows[round.state->trials[i / kChunk] * round.row_stride + col + i % kChunk] : 0.0f;
    }
  }
  __device__ void store(double (&trials)[kTrials][kChunk]) const {
    KITH_UNROLL
    for (int n = 0; n < kEach; ++n) {
      const int i = static_cast<int>(threadIdx.x) + n * kThreads;
      trials[i / kChunk][i % kChunk] = static_cast<double>(values_[n]);
    }
  }

 private:
  static constexpr int kEach = kTrials * kChunk / kThreads;
  static_assert(kTrials * kChunk % kThreads == 0);
  float values_[kEach];
};

// A block takes every gridDim.x-th tile, chunk of columns after chunk.
template <int kTrials, int kRows>
__global__ void __launch_bounds__(kThreads, 2) try_rows_kernel(PlusPlusRound round) {
  extern __shared__ __align__(16) std::byte memory[];
  auto& shared = *vectors<TryShared<kTrials, kRows>>(memory);
  const int lane = static_cast<int>(threadIdx.x) % kCanonicalLanes;
  const int group = static_cast<int>(threadIdx.x) / kCanonicalLanes;
  const unsigned threads = 0xFFFFu << (threadIdx.x % 32 / kCanonicalLanes * kCanonicalLanes);
  const int64_t tiles = divide_up(round.tree.rows, TryShared<kTrials, kRows>::kTileRows);
  int buffer = 0;
  int tile_buffer = 0;
  bool has_trials = false;
  fetch_rows(round, blockIdx.x, 0, buffer, shared);  // which nobody writes
  ptx::wait_for_kernel_before();
  fetch_nearest(round, blockIdx.x, tile_buffer, shared);
  __pipeline_commit();
  TrialChunk<kTrials> trials;
  trials.fetch(round, 0);
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x, tile_buffer ^= 1) {
    double sums[kTrials * kRows] = {};
    for (int64_t col = 0; col < round.cols; col += kChunk, buffer ^= 1) {
      if (col + kChunk < round.cols) {
        fetch_rows(round, tile, col + kChunk, buffer ^ 1, shared);
      } else if (tile + gridDim.x < tiles) {
        fetch_rows(round, tile + gridDim.x, 0, buffer ^ 1, shared);
        fetch_nearest(round, tile + gridDim.x, tile_buffer ^ 1, shared);
      }
      __pipeline_commit();
      const int width = static_cast<int>(round.cols - col < kChunk ? round.cols - col : kChunk);
      if (!has_trials) {
        trials.store(shared.trials);
        has_trials = round.cols <= kChunk;
        if (!has_trials) trials.fetch(round, col + kChunk < round.cols ? col + kChunk : 0);
      }
      __pipeline_wait_prior(1);
      __syncthreads();
      for (int c = lane; c < width; c += kCanonicalLanes) {
        double values[kRows];
        KITH_UNROLL
        for (int r = 0; r < kRows; ++r) values[r] = static_cast<double>(shared.rows[buffer][group * kRows + r][c]);
        KITH_UNROLL
        for (int t = 0; t < kTrials; ++t) {
          const double trial = shared.trials[t][c];
          KITH_UNROLL
          for (int r = 0; r < kRows; ++r) {
            sums[t * kRows + r] = canonical_step<KeyKind::squared_l2>(sums[t * kRows + r], values[r], trial, 0, 0);
          }
        }
      }
      if (col + kChunk < round.cols) __syncthreads();
    }
    join_lanes<kCanonicalLanes / 2>(sums, 0, kTrials * kRows, threads, [&](int i, double sum) {
      shared.keys[i / kRows][group * kRows + i % kRows] =
          key_of_ordered(ordered_key(canonical_key<KeyKind::squared_l2>(sum, 0, 0)));
    });
    __syncthreads();
    finish_tile(round, tile, shared.nearest[tile_buffer], shared);
  }
}

// canonical_tree of lanes in registers; those past the last column are zero, and are not added.
template <int kCols, int kApart = kCanonicalLanes / 2>
__device__ __forceinline__ double add_lanes(double (&lanes)[kCols]) {
  KITH_UNROLL
  for (int j = 0; j < kApart; ++j) {
    if (j + kApart < kCols) lanes[j] += lanes[j + kApart];
  }
  if constexpr (kApart > 1) add_lanes<kCols, kApart / 2>(lanes);
  return lanes[0];
}

// Rows of up to sixteen columns: a thread for each, which has a lane of the sum for each column. A block takes every
// gridDim.x-th tile of kThreads rows.
template <int kCols>
__global__ void __launch_bounds__(kThreads) try_narrow_rows_kernel(PlusPlusRound round) {
  constexpr int kSegments = kThreads / kDrawFan;
  static_assert(kMostTrials * kSegments <= kThreads && kCols <= kCanonicalLanes);
  __shared__ double trials[kMostTrials][kCols];
  __shared__ double steps[kMostTrials][kThreads + 1];
  const int thread = static_cast<int>(threadIdx.x);
  ptx::wait_for_kernel_before();
  for (int i = thread; i < round.trials * kCols; i += kThreads) {
    const int t = i / kCols;
    const int c = i % kCols;
    trials[t][c] =
        c < round.cols ? static_cast<double>(round.rows[round.state->trials[t] * round.row_stride + c]) : 0.0;
  }
  const uint32_t best = round.first ? 0 : round.state->best;
  const int64_t tiles = divide_up(round.tree.rows, kThreads);
  __syncthreads();
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t row = tile * kThreads + thread;
    const bool real = row < round.tree.rows;
    float values[kCols] = {};
    float before = HUGE_VALF;
    double weight = 1;
    if (real) {
      const float* const from = round.rows + row * round.row_stride;
      if (round.whole_vectors) {
        KITH_UNROLL
        for (int c = 0; c < kCols; c += 4) {
          if (c >= round.cols) continue;
          const auto four = load_vector<float4>(from + c);
          values[c] = four.x;
          values[c + 1] = four.y;
          values[c + 2] = four.z;
          values[c + 3] = four.w;
        }
      } else {
        KITH_UNROLL
        for (int c = 0; c < kCols; ++c) values[c] = c < round.cols ? from[c] : 0.0f;
      }
      if (!round.first) before = round.distances[best * round.stride + row];  // which may be written below
      if (round.weights != nullptr) weight = static_cast<double>(round.weights[row]);
    }
#pragma unroll 2
    for (int t = 0; t < round.trials; ++t) {
      double lanes[kCols];
      KITH_UNROLL
      for (int c = 0; c < kCols; ++c) {
        lanes[c] = canonical_step<KeyKind::squared_l2>(0.0, static_cast<double>(values[c]), trials[t][c], 0, 0);
      }
      const float key = key_of_ordered(ordered_key(canonical_key<KeyKind::squared_l2>(add_lanes<kCols>(lanes), 0, 0)));
      const float distance = key < before ? key : before;
      if (real) round.distances[t * round.stride + row] = distance;
      const auto step = static_cast<double>(distance);
      steps[t][thread] = !real ? 0.0 : round.weights == nullptr ? step : step * weight;
    }
    __syncthreads();
    const int64_t segment = tile * kSegments + thread % kSegments;
    if (thread < round.trials * kSegments && segment < round.tree.segments) {
      const double* const mine = steps[thread / kSegments] + thread % kSegments * kDrawFan;
      round.segments[(thread / kSegments * kDrawFan + segment % kDrawFan) * round.tree.blocks() + segment / kDrawFan] =
          sum_children([&](int j) { return mine[j]; }, kDrawFan);
    }
    __syncthreads();
  }
}

// One block.
template <bool kWeighted>
__global__ void __launch_bounds__(kTakeThreads) take_best_kernel(PlusPlusRound round) {
  __shared__ double totals[kMostTrials];
  __shared__ int best;
  ptx::wait_for_kernel_before();
  const DrawTree& tree = round.tree;
  const int64_t blocks = tree.blocks();
  for (int64_t i = threadIdx.x; i < round.trials * blocks; i += kTakeThreads) {
    const int64_t t = i / blocks;
    const int64_t block = i % blocks;
    const double* const segments = round.segments + t * kDrawFan * blocks + block;
    round.sums[t * tree.size + block] =
        sum_children([&](int j) { return segments[j * blocks]; }, DrawTree::children_of(block, tree.segments));
  }
  for (int level = 1; level < tree.levels; ++level) {
    __syncthreads();
    for (int64_t i = threadIdx.x; i < round.trials * tree.sizes[level]; i += kTakeThreads) {
      double* const sums = round.sums + i / tree.sizes[level] * tree.size;
      const int64_t node = i % tree.sizes[level];
      const double* const children = sums + tree.offsets[level - 1] + node * kDrawFan;
      sums[tree.offsets[level] + node] =
          sum_children([&](int j) { return children[j]; }, DrawTree::children_of(node, tree.sizes[level - 1]));
    }
  }
  __syncthreads();
  if (threadIdx.x < static_cast<unsigned>(round.trials)) {
    totals[threadIdx.x] = tree_total(tree, round.sums + threadIdx.x * tree.size);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int lowest = 0;
    double total = HUGE_VAL;
    for (int t = 0; t < round.trials; ++t) {
      if (totals[t] < total) {
        total = totals[t];
        lowest = t;
      }
    }
    best = lowest;
    *round.chosen = round.state->trials[lowest];
    round.state->best = static_cast<uint32_t>(lowest);
  }
  __syncthreads();
  // A warp for each draw, of which one lane works.
  const int draw = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x % 32 != 0 || draw >= round.next_trials) return;
  const float* const nearest = round.distances + best * round.stride;
  const double* const segments = round.segments + int64_t{best} * kDrawFan * blocks;
  const auto step = [&](int64_t i) {
    const auto distance = static_cast<double>(nearest[i]);
    if constexpr (kWeighted) return static_cast<double>(round.weights[i]) * distance;
    return distance;
  };
  round.state->trials[draw] = draw_row(
      tree, round.sums + best * tree.size, round.shares[draw] * totals[best],
      [&](int64_t block, int i) { return segments[i * blocks + block]; }, step);
}

template <int kCols>
void launch_try_narrow(const PlusPlusRound& round, cudaStream_t stream) {
  constexpr int64_t kMostBlocks = 132 * 6;
  const int64_t tiles = divide_up(round.tree.rows, kThreads);
  launch(try_narrow_rows_kernel<kCols>, Grid::of(std::min(tiles, kMostBlocks), kThreads).chained(), stream, round);
}

template <int kTrials, int kRows>
void launch_try(const PlusPlusRound& round, cudaStream_t stream) {
  constexpr int kMostBlocks = 132 * 2;  // they take tiles until none are left
  constexpr auto kBytes = static_cast<int64_t>(sizeof(TryShared<kTrials, kRows>));
  const int64_t tiles = divide_up(round.tree.rows, kGroups * kRows);
  const auto kernel = try_rows_kernel<kTrials, kRows>;
  KITH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kBytes)));
  launch(kernel, Grid::of(std::min<int64_t>(tiles, kMostBlocks), kThreads).with_shared(kBytes).chained(), stream,
         round);
}

}  // namespace

void launch_try_rows(PlusPlusRound round, cudaStream_t stream) {
  round.whole_vectors =
      reinterpret_cast<uintptr_t>(round.rows) % 16 == 0 && round.row_stride % 4 == 0 && round.cols % 4 == 0;
  if (round.cols <= 4) return launch_try_narrow<4>(round, stream);
  if (round.cols <= 8) return launch_try_narrow<8>(round, stream);
  if (round.cols <= 16) return launch_try_narrow<16>(round, stream);
  if (round.trials <= 4) return launch_try<4, 4>(round, stream);
  if (round.trials <= 8) {  // few rows in smaller tiles, so that every multiprocessor has one
    constexpr int64_t kFewRows = 132 * kGroups * 4;
    return round.tree.rows <= kFewRows ? launch_try<8, 2>(round, stream) : launch_try<8, 4>(round, stream);
  }
  if (round.trials <= 10) return launch_try<10, 4>(round, stream);
  if (round.trials <= 14) return launch_try<14, 2>(round, stream);
  launch_try<kMostTrials, 2>(round, stream);
}

void launch_take_best(const PlusPlusRound& round, cudaStream_t stream) {
  const auto kernel = round.weights != nullptr ? take_best_kernel<true> : take_best_kernel<false>;
  launch(kernel, Grid::of(1, kTakeThreads).chained(), stream, round);
}

}  // namespace kith
