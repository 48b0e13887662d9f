// Canonical keys of many pairs: of unsettled rows with all centres or those that are marked, of all rows with all
// centres, and of rows with the centres that they have.
#include "core/divide.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/warp.hpp"
#include "kernels/assign/centre_pairs_cuda.hpp"
#include "kernels/assign/nearest_centre_cuda.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kFewThreads = 512;
constexpr int64_t kMostBlocks = 132 * 16;
constexpr int64_t kMostFewBlocks = 132 * 4;

__global__ void choose_marking_kernel(const uint32_t* unsettled_count, UnsettledTask task) {
  *task.marked_items = *unsettled_count > task.most_few ? task.items : 0;
}

// The nearest of `count` centres of a row, in all lanes of a warp: four threads for each, whose number is centre(i).
template <bool kProduct, typename X, typename Centre>
__device__ uint64_t nearest_by_warp(const SettleTask& task, const X* values, int64_t count, const Alignment& aligned,
                                    const Centre& centre) {
  constexpr int kGroups = 32 / kRowThreads;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  uint64_t nearest = kPadding;
  for (int64_t i = lane / kRowThreads; i < count; i += kGroups) {
    const uint32_t number = centre(i);
    const double sum = pair_sum<pair_step<kProduct>()>(values, task.centres + number * task.cols, task.cols, aligned);
    const uint64_t found = packed_pair<kProduct>(task, sum, number);
    if (lane % kRowThreads == 0 && found < nearest) nearest = found;
  }
  __syncwarp();
  return warp_least(nearest);
}

// A warp for each unsettled row, four threads for each centre that is marked for it.
template <bool kProduct, typename X>
__global__ void __launch_bounds__(kThreads) settle_marked_kernel(SettleTask task, UnsettledTask unsettled) {
  const int64_t count = *task.unsettled_count;
  if (count <= unsettled.most_few) return;
  const uint32_t* const marks = unsettled.marks;
  const int64_t clusters = unsettled.clusters;
  __shared__ uint16_t lists[kThreads / 32][kMostMarkedCentres];
  const int64_t words = mark_words(clusters);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  uint16_t* const list = lists[threadIdx.x / 32];
  const Alignment aligned = pair_alignment<X>(task);
  const int64_t step = static_cast<int64_t>(gridDim.x) * (kThreads / 32);
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32; i < count; i += step) {
    const int64_t row = task.unsettled[i];
    const bool all = task.thresholds[row] == HUGE_VALF;
    int listed = 0;
    for (int64_t word = 0; word < words; ++word) {  // a bit for each lane
      const bool marked = all || (marks[row * words + word] >> lane & 1) != 0;
      const int64_t centre = marked_row(word, lane);
      const unsigned lanes = __ballot_sync(0xFFFFFFFFu, marked && centre < clusters);
      if (marked && centre < clusters) {
        list[listed + __popc(lanes & ((1u << lane) - 1))] = static_cast<uint16_t>(centre);
      }
      listed += __popc(lanes);
    }
    __syncwarp();
    const uint64_t nearest = nearest_by_warp<kProduct>(task, pair_row<X>(task, row), listed, aligned,
                                                       [&](int64_t at) { return uint32_t{list[at]}; });
    if (lane == 0) take_nearest(task, row, nearest);
  }
}

// A warp for each row.
template <bool kProduct, typename X>
__global__ void __launch_bounds__(kThreads) search_all_kernel(SettleTask task, int64_t clusters, uint32_t* first_bad) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Alignment aligned = pair_alignment<X>(task);
  const int64_t step = static_cast<int64_t>(gridDim.x) * (kThreads / 32);
  for (int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32; row < task.rows.count;
       row += step) {
    const X* const values = pair_row<X>(task, row);
    bool bad = false;
    for (int64_t col = lane; first_bad != nullptr && col < task.cols; col += 32) {
      const auto value = static_cast<float>(values[col]);
      bad = bad || value - value != 0.0f;
    }
    if (bad) atomicMin(first_bad, static_cast<uint32_t>(row));
    __syncwarp();
    const uint64_t nearest =
        nearest_by_warp<kProduct>(task, values, clusters, aligned, [](int64_t i) { return static_cast<uint32_t>(i); });
    if (lane == 0) take_nearest(task, row, nearest);
  }
}

// The keys of rows that have labels.
template <bool kProduct, typename X>
__global__ void __launch_bounds__(kThreads) row_keys_kernel(SettleTask task) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kRowThreads;
  if (row >= task.rows.count || task.thresholds[row] > -HUGE_VALF) return;
  const float* const centre = task.centres + task.labels[row] * task.cols;
  const double sum =
      pair_sum<pair_step<kProduct>()>(pair_row<X>(task, row), centre, task.cols, pair_alignment<X>(task));
  if (threadIdx.x % kRowThreads == 0) task.keys[row] = key_of_ordered(ordered_key(pair_key<kProduct>(task, sum)));
}

// The nearest of all centres of kRows unsettled rows from `first` on, of which `count` there are: four threads of the
// block for each centre, which is read once for all.
template <bool kProduct, int kRows, typename X>
__device__ void search_rows(const SettleTask& task, int64_t clusters, uint32_t first, uint32_t count,
                            const Alignment& aligned) {
  __shared__ uint64_t warps[kRows][kFewThreads / 32];
  const X* rows[kRows];
  int64_t numbers[kRows];
  uint64_t nearest[kRows];
  KITH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    numbers[r] = task.unsettled[first + r < count ? first + r : count - 1];
    rows[r] = pair_row<X>(task, numbers[r]);
    nearest[r] = kPadding;
  }
  for (int64_t c = threadIdx.x / kRowThreads; c < clusters; c += kFewThreads / kRowThreads) {
    double sums[kRows][1];
    pair_sums<pair_step<kProduct>(), kRows, 1>(rows, {task.centres + c * task.cols}, task.cols, aligned, sums);
    KITH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const uint64_t found = packed_pair<kProduct>(task, sums[r][0], static_cast<uint32_t>(c));
      if (threadIdx.x % kRowThreads == 0 && found < nearest[r]) nearest[r] = found;
    }
  }
  __syncwarp();
  KITH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    nearest[r] = warp_least(nearest[r]);
    if (threadIdx.x % 32 == 0) warps[r][threadIdx.x / 32] = nearest[r];
  }
  __syncthreads();
  KITH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (threadIdx.x != static_cast<unsigned>(r) || first + r >= count) continue;
    uint64_t least = kPadding;
    for (const uint64_t other : warps[r]) least = other < least ? other : least;
    take_nearest(task, numbers[r], least);
  }
  __syncthreads();
}

// Where there are no more unsettled rows than `most`. Blocks take some at a time until none are left: one, so that all
// are at work, or four where there are many.
template <bool kProduct, typename X>
__global__ void __launch_bounds__(kFewThreads) search_few_kernel(SettleTask task, int64_t clusters, uint32_t most) {
  constexpr int kMany = 4;
  const uint32_t count = *task.unsettled_count;
  if (count > most) return;
  const Alignment aligned = pair_alignment<X>(task);
  if (count <= 2 * gridDim.x) {
    for (uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
      search_rows<kProduct, 1, X>(task, clusters, i, count, aligned);
    }
  } else {
    for (uint32_t i = kMany * blockIdx.x; i < count; i += kMany * gridDim.x) {
      search_rows<kProduct, kMany, X>(task, clusters, i, count, aligned);
    }
  }
}

}  // namespace

void launch_choose_marking(const SettleTask& task, const UnsettledTask& unsettled, cudaStream_t stream) {
  launch(choose_marking_kernel, Grid::of(1, 1), stream, task.unsettled_count, unsettled);
}

void launch_search_all(const SettleTask& task, int64_t clusters, uint32_t* first_bad, cudaStream_t stream) {
  const Grid grid = Grid::of(std::min(divide_up(task.rows.count * 32, kThreads), kMostBlocks), kThreads);
  visit_pairs(task, [&]<bool kProduct, typename X>() {
    launch(search_all_kernel<kProduct, X>, grid, stream, task, clusters, first_bad);
  });
}

void launch_settle_unsettled(const SettleTask& task, const UnsettledTask& unsettled, cudaStream_t stream) {
  const int64_t marked = std::min<int64_t>(divide_up(task.rows.count * 32, kThreads), kMostBlocks);
  const int64_t few = std::min<int64_t>({task.rows.count, unsettled.most_few, kMostFewBlocks});
  visit_pairs(task, [&]<bool kProduct, typename X>() {
    if (task.rows.count > unsettled.most_few) {
      launch(settle_marked_kernel<kProduct, X>, Grid::of(marked, kThreads), stream, task, unsettled);
    }
    launch(search_few_kernel<kProduct, X>, Grid::of(few, kFewThreads), stream, task, unsettled.clusters,
           unsettled.most_few);
  });
}

void launch_search_few(const SettleTask& task, int64_t clusters, int64_t count, cudaStream_t stream) {
  const Grid grid = Grid::of(std::min(count, kMostFewBlocks), kFewThreads);
  visit_pairs(task, [&]<bool kProduct, typename X>() {
    launch(search_few_kernel<kProduct, X>, grid, stream, task, clusters, static_cast<uint32_t>(count));
  });
}

void launch_row_keys(const SettleTask& task, cudaStream_t stream) {
  const Grid grid = Grid::over(task.rows.count * kRowThreads, kThreads);
  visit_pairs(task, [&]<bool kProduct, typename X>() { launch(row_keys_kernel<kProduct, X>, grid, stream, task); });
}

}  // namespace kith
