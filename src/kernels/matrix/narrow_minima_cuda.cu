#include "kernels/matrix/narrow_minima_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/matrix/narrow_window.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kTilesPerGroup = 2;
constexpr int kRows = kQueryTile;  // of a block at a time: a pair of tiles, whose groups are all there
constexpr int kGroups = kGroupsPerTile;
constexpr int kGroupRows = group_rows(kTilesPerGroup);
constexpr int kQueries = 4;  // of a thread
constexpr int kBlockQueries = kThreads * kQueries;
constexpr int kBlocksEach = 16;  // of a multiprocessor, about
static_assert(kRows == kThreads && kRows == kGroups * kGroupRows);

// A vector as it is compared: of length 1 for cosine. `term` is what its squares have beside the differences: a zero
// vector is as far from every other as one at a right angle, at a squared distance of 2 of vectors of length 1.
struct NarrowVector {
  float values[kNarrowCols];
  float term;
};

template <int kCols, bool kUnit>
__device__ NarrowVector load_vector_of(const DeviceRowsView& rows, int64_t row) {
  NarrowVector loaded = {};
  const std::byte* const from = row_bytes_at(rows, row);
  const double inverse_norm = kUnit ? rows.inverse_norms[row] : 1.0;
  KITH_UNROLL
  for (int c = 0; c < kCols; ++c) {
    const double value = stored_value(from, rows.dtype, c);
    loaded.values[c] = static_cast<float>(kUnit ? value * inverse_norm : value);
  }
  if (kUnit && inverse_norm == 0.0) loaded.term = 1.0f;
  return loaded;
}

// Rows in shared memory, those of a group one after the other: columns and a term where there is one, else up to four
// rows of one column beside each other.
template <int kCols, bool kUnit>
struct NarrowTile {
  static constexpr int kEach = kUnit ? 4 : kCols;  // floats
  alignas(16) float values[kRows * kEach];

  __device__ void store(int place, const NarrowVector& row) {
    KITH_UNROLL
    for (int c = 0; c < kCols; ++c) values[place * kEach + c] = row.values[c];
    if constexpr (kUnit) values[place * kEach + kCols] = row.term;
  }
};

// The smallest of the values that a group's rows have for the thread's queries.
template <int kCols, bool kUnit>
__device__ void find_least(const float* group, const NarrowVector (&queries)[kQueries], float (&least)[kQueries]) {
  constexpr int kEach = NarrowTile<kCols, kUnit>::kEach;
  constexpr int kTogether = 4 / kEach;  // rows of a load
  KITH_UNROLL
  for (float& one : least) one = HUGE_VALF;
#pragma unroll 4
  for (int i = 0; i < kGroupRows; i += kTogether) {
    const auto four = load_vector<float4>(group + i * kEach);
    const float loaded[4] = {four.x, four.y, four.z, four.w};
    KITH_UNROLL
    for (int r = 0; r < kTogether; ++r) {
      const float* const row = loaded + r * kEach;
      KITH_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        const float first = queries[q].values[0] - row[0];
        if constexpr (kCols == 1 && !kUnit) {
          least[q] = fminf(least[q], fabsf(first));  // squared at the end
        } else {
          float sum = kUnit ? fmaf(first, first, row[kCols]) : first * first;
          KITH_UNROLL
          for (int c = 1; c < kCols; ++c) {
            const float next = queries[q].values[c] - row[c];
            sum = fmaf(next, next, sum);
          }
          least[q] = fminf(least[q], sum);
        }
      }
    }
  }
  if constexpr (kCols == 1 && !kUnit) {
    KITH_UNROLL
    for (float& one : least) one *= one;
  }
}

// Block (x, y) has the queries of tile x and every gridDim.y-th pair of tiles of rows.
template <int kCols, bool kUnit>
__global__ void __launch_bounds__(kThreads) narrow_minima_kernel(const __grid_constant__ NarrowMinimaTask task) {
  __shared__ NarrowTile<kCols, kUnit> tile;
  const int64_t first_query = static_cast<int64_t>(blockIdx.x) * kBlockQueries + threadIdx.x;
  const int64_t groups = group_count(task.rows.count, kTilesPerGroup);
  NarrowVector queries[kQueries];
  KITH_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    const int64_t query = first_query + q * kThreads;
    queries[q] = load_vector_of<kCols, kUnit>(task.queries, query < task.queries.count ? query : 0);
  }
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t pairs = groups / kGroups;
  for (int64_t pair = blockIdx.y; pair < pairs; pair += gridDim.y) {
    const int64_t row = group_row(pair * kGroups + thread / kGroupRows, thread % kGroupRows, kTilesPerGroup);
    NarrowVector mine = {};
    mine.values[0] = NAN;  // no row: its values are NaN, which is below nothing
    if (row < task.rows.count) mine = load_vector_of<kCols, kUnit>(task.rows, row);
    __syncthreads();  // all have read the pair before
    tile.store(thread, mine);
    __syncthreads();
    float least[kGroups][kQueries];
    KITH_UNROLL
    for (int group = 0; group < kGroups; ++group) {
      find_least<kCols, kUnit>(tile.values + group * kGroupRows * NarrowTile<kCols, kUnit>::kEach, queries,
                               least[group]);
    }
    KITH_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      const int64_t query = first_query + q * kThreads;
      if (query >= task.queries.count) break;
      store_vector(task.minima + query * groups + pair * kGroups,
                   float4{least[0][q], least[1][q], least[2][q], least[3][q]});
    }
  }
}

constexpr int kWindowThreads = 256;

__global__ void __launch_bounds__(kWindowThreads)
    narrow_windows_kernel(const __grid_constant__ KnnWindowTask task, const double* inverse_norms) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kWindowThreads + threadIdx.x;
  if (query >= task.queries) return;
  const float* const minima = task.minima + query * task.selected;
  const double kth = task.k <= task.selected ? minima[task.k - 1] : HUGE_VAL;
  CandidateWindow window = narrow_window(task.kind, task.cols, kth);
  if (inverse_norms != nullptr && inverse_norms[query] == 0.0) window.sure = false;
  int count = 0;
  while (count < task.selected && minima[count] <= window.threshold) ++count;
  const bool all_there = count < task.selected || task.selected == task.groups;
  task.group_counts[query] = window.sure && all_there ? count : -1;
  task.key_limits[query] = window.sure ? ordered_key(window.key_limit) : 0;
  const BaseBounds base = *task.base_bounds;
  const MeasuredWindow measured =
      measured_window({task.kind, task.type == OperandType::bytes, task.cols}, base, task.query_bounds[query]);
  const CandidateWindow products = range_window(measured.problem, measured.query, base.rows, window.key_limit);
  task.thresholds[query] = window.sure && measured.sure && products.sure ? products.threshold : -HUGE_VALF;
}

}  // namespace

void launch_narrow_minima(const NarrowMinimaTask& task, cudaStream_t stream) {
  const int64_t tiles = divide_up(task.queries.count, kBlockQueries);
  const int64_t pairs = group_count(task.rows.count, kTilesPerGroup) / kGroups;
  if (tiles == 0 || pairs == 0) return;
  const int64_t down = std::clamp<int64_t>(divide_up(int64_t{kBlocksEach} * task.multiprocessors, tiles), 1, pairs);
  const Grid grid = Grid::of(tiles, std::min<int64_t>(down, 65535), kThreads);
  const bool unit = task.kind == KeyKind::cosine;
  const auto kernel = task.cols == 1   ? (unit ? narrow_minima_kernel<1, true> : narrow_minima_kernel<1, false>)
                      : task.cols == 2 ? (unit ? narrow_minima_kernel<2, true> : narrow_minima_kernel<2, false>)
                                       : narrow_minima_kernel<3, true>;
  launch(kernel, grid, stream, task);
}

void launch_narrow_windows(const KnnWindowTask& task, const double* inverse_norms, cudaStream_t stream) {
  launch(narrow_windows_kernel, Grid::over(task.queries, kWindowThreads), stream, task, inverse_norms);
}

}  // namespace kith
