#include "cluster/plus_plus_steps_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/product/operand_layout.hpp"

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

// A block has kGroups x kRows rows. Past the last row the last one is read again, and nothing of it is kept.
template <int kTrials, int kRows>
__global__ void __launch_bounds__(kThreads, 2) try_rows_kernel(PlusPlusRound round) {
  constexpr int kTileRows = kGroups * kRows;
  __shared__ double trials[kTrials][kChunk];
  __shared__ float found[kTrials][kTileRows + 1];
  __shared__ float nearest[kTileRows];
  const int lane = static_cast<int>(threadIdx.x) % kCanonicalLanes;
  const int group = static_cast<int>(threadIdx.x) / kCanonicalLanes;
  const unsigned threads = 0xFFFFu << (threadIdx.x % 32 / kCanonicalLanes * kCanonicalLanes);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTileRows;
  const int64_t last = round.tree.rows - 1;
  const int rows = static_cast<int>(last + 1 - first < kTileRows ? last + 1 - first : kTileRows);
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += kThreads) {
    nearest[i] =
        round.first ? __int_as_float(0x7F800000) : round.distances[round.state->best * round.stride + first + i];
  }
  const float* mine[kRows];
  KITH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const int64_t row = first + group * kRows + r;
    mine[r] = round.rows + (row < last ? row : last) * round.row_stride;
  }
  double sums[kTrials * kRows] = {};
  for (int64_t chunk = 0; chunk < round.cols; chunk += kChunk) {
    const int width = static_cast<int>(round.cols - chunk < kChunk ? round.cols - chunk : kChunk);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kTrials * kChunk; i += kThreads) {
      const int t = i / kChunk;
      const int c = i % kChunk;
      const bool real = t < round.trials && c < width;
      trials[t][c] =
          real ? static_cast<double>(round.rows[round.state->trials[t] * round.row_stride + chunk + c]) : 0.0;
    }
    __syncthreads();
#pragma unroll 2
    for (int c = lane; c < width; c += kCanonicalLanes) {
      double values[kRows];
      KITH_UNROLL
      for (int r = 0; r < kRows; ++r) values[r] = static_cast<double>(mine[r][chunk + c]);
      KITH_UNROLL
      for (int t = 0; t < kTrials; ++t) {
        const double trial = trials[t][c];
        KITH_UNROLL
        for (int r = 0; r < kRows; ++r) {
          sums[t * kRows + r] = canonical_step<KeyKind::squared_l2>(sums[t * kRows + r], values[r], trial, 0, 0);
        }
      }
    }
  }
  join_lanes<kCanonicalLanes / 2>(sums, 0, kTrials * kRows, threads, [&](int i, double sum) {
    found[i / kRows][group * kRows + i % kRows] =
        key_of_ordered(ordered_key(canonical_key<KeyKind::squared_l2>(sum, 0, 0)));
  });
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < round.trials * kTileRows; i += kThreads) {
    const int t = i / kTileRows;
    const int row = i % kTileRows;
    if (row >= rows) continue;
    const float distance = found[t][row] < nearest[row] ? found[t][row] : nearest[row];
    found[t][row] = distance;
    round.distances[t * round.stride + first + row] = distance;
  }
  __syncthreads();
  const int segments = static_cast<int>(divide_rounding_up(rows, kDrawFan));
  for (int i = static_cast<int>(threadIdx.x); i < round.trials * segments; i += kThreads) {
    const int t = i / segments;
    const int part = i % segments;
    const int64_t segment = first / kDrawFan + part;
    const float* const distances = found[t] + part * kDrawFan;
    const float* const weights = round.weights == nullptr ? nullptr : round.weights + segment * kDrawFan;
    const auto step = [&](int j) {
      const auto distance = static_cast<double>(distances[j]);
      return weights == nullptr ? distance : static_cast<double>(weights[j]) * distance;
    };
    round.segments[(t * kDrawFan + segment % kDrawFan) * round.tree.blocks() + segment / kDrawFan] =
        sum_children(step, DrawTree::children_of(segment, round.tree.rows));
  }
}

// One block.
__global__ void __launch_bounds__(kTakeThreads) take_best_kernel(PlusPlusRound round) {
  __shared__ double totals[kMostTrials];
  __shared__ int best;
  const DrawTree& tree = round.tree;
  const int64_t blocks = tree.blocks();
  const auto segment_of = [&](int t, int64_t segment) {
    return round.segments[(t * kDrawFan + segment % kDrawFan) * blocks + segment / kDrawFan];
  };
  for (int64_t i = threadIdx.x; i < round.trials * blocks; i += kTakeThreads) {
    const int t = static_cast<int>(i / blocks);
    const int64_t block = i % blocks;
    round.sums[t * tree.size + block] = sum_children([&](int j) { return segment_of(t, block * kDrawFan + j); },
                                                     DrawTree::children_of(block, tree.segments));
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
  const auto step = [&](int64_t i) {
    const auto distance = static_cast<double>(nearest[i]);
    return round.weights == nullptr ? distance : static_cast<double>(round.weights[i]) * distance;
  };
  round.state->trials[draw] = draw_row(
      tree, round.sums + best * tree.size, round.shares[draw] * totals[best],
      [&](int64_t segment) { return segment_of(best, segment); }, step);
}

template <int kTrials, int kRows>
void launch_try(const PlusPlusRound& round, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(divide_rounding_up(round.tree.rows, kGroups * kRows));
  try_rows_kernel<kTrials, kRows><<<blocks, kThreads, 0, stream>>>(round);
  KITH_CUDA_CHECK_LAUNCH("try_rows_kernel");
}

}  // namespace

void launch_try_rows(const PlusPlusRound& round, cudaStream_t stream) {
  if (round.trials <= 4) return launch_try<4, 4>(round, stream);
  if (round.trials <= 8) return launch_try<8, 4>(round, stream);
  if (round.trials <= 10) return launch_try<10, 4>(round, stream);
  if (round.trials <= 14) return launch_try<14, 2>(round, stream);
  launch_try<kMostTrials, 2>(round, stream);
}

void launch_take_best(const PlusPlusRound& round, cudaStream_t stream) {
  take_best_kernel<<<1, kTakeThreads, 0, stream>>>(round);
  KITH_CUDA_CHECK_LAUNCH("take_best_kernel");
}

}  // namespace kith
