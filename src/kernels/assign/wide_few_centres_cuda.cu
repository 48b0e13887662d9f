// few_centres_cuda.hpp for rows of more columns than registers hold: a warp goes over two rows, each lane over four
// columns of every 128, and reads a centre once for both. Then sixteen threads have a row each: its canonical sums are
// of values that have just been read. Cost: one read of the rows.
#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/warp.hpp"
#include "kernels/assign/few_centre_screen.hpp"
#include "kernels/assign/few_centres_cuda.hpp"
#include "kernels/distance/lane_sums_cuda.hpp"
#include "kernels/distance/load_four_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kRows = 2;  // of a warp
constexpr int kBlocksEach = 8;
static_assert(kRows * kCanonicalLanes == 32);

// The f32 sums of both rows with up to kCentres centres, in all lanes. Returns the largest magnitude of the row that
// this half of the warp has, as bits.
template <int kCentres, typename X>
__device__ __forceinline__ uint32_t screen_rows(const X* const (&rows)[kRows], const FewCentresTask& task,
                                                bool rows_lie, bool centres_lie, float (&sums)[kRows][kCentres]) {
  const auto count = static_cast<int>(task.centre_count);
  uint32_t largest[kRows] = {};
  for (int64_t col = 4 * static_cast<int64_t>(threadIdx.x % 32); col < task.cols; col += 128) {
    float values[kRows][4];
    KITH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Four<X> four = load_four(rows[r], col, task.cols, rows_lie);
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        values[r][i] = static_cast<float>(four.values[i]);
        largest[r] = max(largest[r], magnitude_bits(values[r][i]));
      }
    }
    KITH_UNROLL
    for (int c = 0; c < kCentres; ++c) {
      if (c >= count) continue;
      const Four<float> centre = load_four(task.centres + c * task.cols, col, task.cols, centres_lie);
      KITH_UNROLL
      for (int r = 0; r < kRows; ++r) {
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) {
          const float difference = values[r][i] - centre.values[i];
          sums[r][c] = fmaf(difference, difference, sums[r][c]);
        }
      }
    }
  }
  KITH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    KITH_UNROLL
    for (int c = 0; c < kCentres; ++c) {
      sums[r][c] = warp_sum(sums[r][c]);
      if (c >= count) sums[r][c] = HUGE_VALF;
    }
  }
  const bool second = threadIdx.x % 32 >= kCanonicalLanes;
  const uint32_t all[kRows] = {__reduce_max_sync(kAllLanes, largest[0]), __reduce_max_sync(kAllLanes, largest[1])};
  return all[second ? 1 : 0];
}

template <int kCentres, typename X>
__global__ void __launch_bounds__(kThreads) wide_few_centres_kernel(FewCentresTask task) {
  const X* const data = static_cast<const X*>(task.rows.data);
  const bool rows_lie = rows_aligned(data, task.rows.stride);
  const bool centres_lie = rows_aligned(task.centres, task.cols);
  const bool second = threadIdx.x % 32 >= kCanonicalLanes;
  const int64_t step = static_cast<int64_t>(gridDim.x) * (kThreads / 32) * kRows;
  for (int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32 * kRows;
       first < task.rows.count; first += step) {
    const int64_t last = task.rows.count - 1;
    const X* const rows[kRows] = {data + first * task.rows.stride,
                                  data + (first < last ? first + 1 : last) * task.rows.stride};
    float sums[kRows][kCentres] = {};
    const uint32_t largest = screen_rows<kCentres>(rows, task, rows_lie, centres_lie, sums);
    // From here on half a warp has a row.
    const int64_t row = second ? first + 1 : first;
    if (row > last) continue;
    if (threadIdx.x % kCanonicalLanes == 0) see_row(task.seen, row, largest);
    float least = HUGE_VALF;
    float next = HUGE_VALF;
    uint32_t label = 0;
    KITH_UNROLL
    for (int c = 0; c < kCentres; ++c) {
      const float sum = second ? sums[1][c] : sums[0][c];
      next = fminf(next, fmaxf(sum, least));
      label = sum < least ? static_cast<uint32_t>(c) : label;
      least = fminf(least, sum);
    }
    if (row == task.probe && least > probe_limit(task.cols)) task.seen->probe_near = 0;
    const float limit = few_centre_limit(least, task.cols);
    const X* const values = second ? rows[1] : rows[0];
    const auto exact = [&](uint32_t centre) {
      double sum[1];
      lane_sums<KeyKind::squared_l2, 1>(values, {task.centres + centre * task.cols}, task.cols, sum);
      return pack_neighbor(ordered_key(canonical_key<KeyKind::squared_l2>(sum[0], 0, 0)), centre);
    };
    uint64_t nearest = 0;
    if (next > limit) {
      if (task.keys != nullptr) nearest = exact(label);
    } else {  // several, or nothing is certain
      nearest = exact(0);
      for (uint32_t c = 1; c < static_cast<uint32_t>(task.centre_count); ++c) {
        const uint64_t found = exact(c);
        nearest = found < nearest ? found : nearest;
      }
      label = row_of(nearest);
    }
    if (threadIdx.x % kCanonicalLanes != 0) continue;
    task.labels[row] = static_cast<int32_t>(label);
    if (task.keys != nullptr) task.keys[row] = key_of_ordered(ordered_of(nearest));
  }
}

template <int kCentres>
void launch_count(const FewCentresTask& task, int multiprocessors, cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(divide_up(divide_up(task.rows.count, kRows) * 32, kThreads),
                                           int64_t{multiprocessors} * kBlocksEach);
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    launch(wide_few_centres_kernel<kCentres, X>, Grid::of(blocks, kThreads), stream, task);
  });
}

}  // namespace

void launch_wide_few_centres(const FewCentresTask& task, int multiprocessors, cudaStream_t stream) {
  static_assert(kWideFewCentres == 8);
  if (task.centre_count <= 2) return launch_count<2>(task, multiprocessors, stream);
  if (task.centre_count <= 4) return launch_count<4>(task, multiprocessors, stream);
  launch_count<8>(task, multiprocessors, stream);
}

}  // namespace kith
