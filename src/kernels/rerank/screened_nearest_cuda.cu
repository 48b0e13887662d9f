#include "kernels/rerank/screened_nearest_cuda.hpp"

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/last_block.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/row_sum_cuda.hpp"
#include "kernels/rerank/byte_rounding_cuda.hpp"
#include "kernels/rerank/candidate_key_cuda.hpp"
#include "kernels/select/rank_select_cuda.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = kFewNearestThreads;
constexpr int kWarps = kFewNearestWarps;
constexpr int kCodeThreads = 8;                 // threads per row of codes, sixteen bytes each at a time
constexpr int kGroups = 32 / kCodeThreads;      // groups per warp
constexpr int kRowsEach = 4;                    // rows per group at a time
constexpr int kWarpRows = kGroups * kRowsEach;  // rows per warp at a time
constexpr int kBlockRows = kWarps * kWarpRows;  // rows per block at a time
static_assert(kBlockRows == kScreenedRows);
constexpr int kUnit = 16;  // bytes
constexpr int kRoom = kFewNearestRoom;
constexpr int kMostWarps = kFewNearestMostBlocks * kWarps;
constexpr int kMinimaEach = kMostWarps / kThreads;  // per thread of the last block
constexpr int kAhead = 4;                           // loads in flight
static_assert(kFewNearestMostK <= kRankThreads && kThreads == kRankThreads);

// The query rounded to whole numbers, and the terms that bounds need.
struct ScreenQuery {
  int8_t* high;  // in shared memory, stride bytes each
  int8_t* low;
  ByteQueryBounds bounds;
  bool finite;
};

// Block-wide reduction: sum or maximum.
template <bool kSum>
__device__ double over_block(double value, double* room) {
  value = kSum ? warp_sum(value) : warp_largest_double(value);
  __syncthreads();
  if (lane_index() == 0) room[threadIdx.x / 32] = value;
  __syncthreads();
  double all = room[0];
  for (int warp = 1; warp < kWarps; ++warp) {
    const double other = room[warp];
    all = kSum ? all + other : other > all || other != other ? other : all;
  }
  return all;
}

// The query's norm, for cosine; all threads, each of which adds as canonical.hpp says.
__device__ double inverse_norm_of(const ScreenedNearestTask& task, const DeviceRowsView& query) {
  const auto* const data = static_cast<const std::byte*>(query.data);
  double lanes[kRowThreadLanes] = {};
  for (int64_t first = threadIdx.x % kRowThreads * kRowThreadLanes; first < task.cols; first += kCanonicalLanes) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) {
      const double value = first + i < task.cols ? stored_value(data, query.dtype, first + i) : 0.0;
      lanes[i] = fma(value, value, lanes[i]);
    }
  }
  return canonical_inverse_norm(__shfl_sync(kAllLanes, join_row_threads(lanes, row_threads()), 0));
}

// All threads of a block.
__device__ __noinline__ ScreenQuery round_query(const ScreenedNearestTask& task, const DeviceRowsView& asked,
                                                int8_t* memory) {
  __shared__ double room[kWarps];
  const void* const data = asked.data;
  const DType dtype = asked.dtype;
  const float* const centre = task.screen.centre;
  const auto thread = static_cast<int64_t>(threadIdx.x);
  const bool unit = task.kind == KeyKind::cosine;
  const double inverse = unit ? inverse_norm_of(task, asked) : 1.0;
  ScreenQuery query{memory, memory + task.screen.stride, {}, true};
  double largest = 0;
  for (int64_t col = thread; col < task.cols; col += kThreads) {
    const double value = fabs(kept_value(data, dtype, col, centre, inverse).value);
    largest = value > largest || value != value ? value : largest;
  }
  largest = over_block<false>(largest, room);
  query.finite = largest - largest == 0.0;
  const bool known = largest < kByteLargest && !(unit && inverse == 0.0);
  const float scale = known ? byte_scale(largest, kQueryCodeMost) : 0.0f;
  Rounding rounding{scale, kQueryCodeMost};
  for (int64_t col = thread; col < task.screen.stride; col += kThreads) {
    int code = 0;
    if (col < task.cols && known) {
      code = rounding.round(kept_value(data, dtype, col, centre, inverse));
    }
    const int high = (code + 64) >> 7;
    query.high[col] = static_cast<int8_t>(high);
    query.low[col] = static_cast<int8_t>(code - 128 * high);
  }
  const double lost = over_block<true>(rounding.lost, room);
  const double from = over_block<true>(rounding.from, room);
  const double square = over_block<true>(rounding.square, room) * scale * scale;
  query.bounds = {scale, static_cast<float>(square), static_cast<float>(sqrt(square) * (1 + 0x1p-22)),
                 known ? byte_residual(sqrt(lost), sqrt(from)) : HUGE_VALF};
  __syncthreads();
  return query;
}

// Puts the rows of candidates into `list`, in the last block; returns -1 if nothing is certain. The k-th smallest of
// the threads' least upper bounds is a reach: candidates have lower bounds within it, and belong to warps whose least
// one is.
__device__ __noinline__ int choose_candidates(const ScreenedNearestTask& task, uint64_t* list) {
  __shared__ __align__(16) uint32_t keys[kRankThreads + 4];
  __shared__ uint16_t chosen[kMostWarps];
  __shared__ int warps;
  __shared__ int count;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto all_warps = static_cast<int>(gridDim.x) * kWarps;
  float lowers[kMinimaEach];
  float least = HUGE_VALF;
  KITH_UNROLL
  for (int i = 0; i < kMinimaEach; ++i) {
    const int warp = i * kThreads + thread;
    const bool there = warp < all_warps;
    lowers[i] = there ? __ldcg(task.minima + all_warps + warp) : HUGE_VALF;
    if (there) least = fminf(least, __ldcg(task.minima + warp));
  }
  if (thread == 0) warps = count = 0;
  const float reach = key_of_ordered(kth_of_block(ordered_key(least), static_cast<int>(task.results.k), keys));
  const int64_t rows = task.rows.count;
  const bool all = reach == HUGE_VALF && rows <= kRoom;  // too few rows for a bound: take all
  const float limit = all ? HUGE_VALF : byte_limit(task.kind, reach);
  if (!(limit == limit)) return -1;
  KITH_UNROLL
  for (int i = 0; i < kMinimaEach; ++i) {
    const int warp = i * kThreads + thread;
    if (warp < all_warps && !(lowers[i] > limit)) chosen[atomicAdd(&warps, 1)] = static_cast<uint16_t>(warp);
  }
  __syncthreads();
  const int64_t apart = static_cast<int64_t>(gridDim.x) * kBlockRows;  // rows of a warp that follow each other
  constexpr int kTogether = 32 / kWarpRows;
  for (int i = thread / 32; i < warps; i += kWarps) {
    const int64_t first = int64_t{chosen[i]} * kWarpRows + lane_index() / kWarpRows * apart + lane_index() % kWarpRows;
    for (int64_t row = first; row < rows; row += kAhead * kTogether * apart) {
      float bounds[kAhead];
      KITH_UNROLL
      for (int ahead = 0; ahead < kAhead; ++ahead) {
        const int64_t next = row + ahead * kTogether * apart;
        bounds[ahead] = next < rows ? __ldcg(task.lowers + next) : HUGE_VALF;
      }
      KITH_UNROLL
      for (int ahead = 0; ahead < kAhead; ++ahead) {
        const int64_t next = row + ahead * kTogether * apart;
        if (next >= rows || bounds[ahead] > limit) continue;  // NaN stays
        const int place = atomicAdd(&count, 1);
        if (place < kRoom) list[place] = static_cast<uint64_t>(next);
      }
    }
  }
  __syncthreads();
  return count <= kRoom ? count : -1;
}

// Canonical keys of the candidates, sorted. All threads of a block.
template <typename X>
__device__ void compare_candidates(const ScreenedNearestTask& task, const DeviceRowsView& asked, double* query,
                                   uint64_t* list, int count) {
  const bool unit = task.kind == KeyKind::cosine;
  const double inverse_q = unit ? inverse_norm_of(task, asked) : 1.0;
  widen_query(asked, 0, task.cols, inverse_q, query);
  __syncthreads();
  const bool aligned = rows_aligned(static_cast<const X*>(task.rows.data), task.rows.stride);
  for (int i = static_cast<int>(threadIdx.x) / kRowThreads; i < count; i += kThreads / kRowThreads) {
    const auto row = static_cast<int64_t>(list[i]);
    const double inverse_x = unit ? task.rows.inverse_norms[row] : 1.0;
    const X* const values = task.rows.row<X>(row);
    const double sum = task.kind == KeyKind::inner_product
                           ? row_sum<true>(query, values, task.cols, aligned, inverse_x)
                           : row_sum<false>(query, values, task.cols, aligned, inverse_x);
    __syncwarp(row_threads());
    if (threadIdx.x % kRowThreads != 0) continue;
    const float key = candidate_key(task.kind, sum, inverse_q, inverse_x);
    list[i] = pack_neighbor(ordered_key(key), static_cast<uint32_t>(row));
  }
  __syncthreads();
  sort_by_rank(list, count);
}

template <typename X>
__global__ void __launch_bounds__(kThreads, kScreenedBlocksTogether)
    screened_nearest_kernel(const __grid_constant__ ScreenedNearestTask task,
                            const __grid_constant__ InlineQueries given) {
  extern __shared__ __align__(16) double memory[];  // the rounded query; then, in the last block, the query and a list
  const auto thread = static_cast<int>(threadIdx.x);
  const int lane = lane_index();
  const int part = lane % kCodeThreads;
  const int group = lane / kCodeThreads;
  const DeviceRowsView asked = given.rows(task.query);
  const ScreenQuery query = round_query(task, asked, vectors<int8_t>(memory));
  const auto* const high = vectors<uint4>(query.high);
  const auto* const low = vectors<uint4>(query.low);
  const ByteScreenView& screen = task.screen;
  const auto units = static_cast<int>(screen.stride / kUnit);
  const int64_t rows = task.rows.count;
  float least_upper = HUGE_VALF;
  float least_lower = HUGE_VALF;
  for (int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarps + thread / 32) * kWarpRows; first < rows;
       first += static_cast<int64_t>(gridDim.x) * kBlockRows) {
    // The row whose bounds this thread computes, of the first threads of a group.
    const int64_t mine = first + kGroups * part + group;
    const bool has_row = part < kRowsEach && mine < rows;
    ByteRowBounds row_bounds{0, 0, 0};
    if (has_row) row_bounds = {screen.scales[mine], screen.squares[mine], screen.residuals[mine]};
    const int8_t* codes[kRowsEach];
    KITH_UNROLL
    for (int i = 0; i < kRowsEach; ++i) {
      const int64_t row = first + kGroups * i + group;
      codes[i] = screen.codes + (row < rows ? row : rows - 1) * screen.stride;
    }
    int highs[kRowsEach] = {};
    int lows[kRowsEach] = {};
    for (int unit = part; unit < units; unit += kCodeThreads) {
      uint4 x[kRowsEach];
      KITH_UNROLL
      for (int i = 0; i < kRowsEach; ++i) x[i] = load_vector<uint4>(codes[i] + unit * kUnit);
      const uint4 h = high[unit];
      const uint4 l = low[unit];
      const uint32_t with_high[4] = {h.x, h.y, h.z, h.w};
      const uint32_t with_low[4] = {l.x, l.y, l.z, l.w};
      KITH_UNROLL
      for (int i = 0; i < kRowsEach; ++i) {
        const uint32_t words[4] = {x[i].x, x[i].y, x[i].z, x[i].w};
        KITH_UNROLL
        for (int word = 0; word < 4; ++word) {
          highs[i] = __dp4a(static_cast<int>(words[word]), static_cast<int>(with_high[word]), highs[i]);
          lows[i] = __dp4a(static_cast<int>(words[word]), static_cast<int>(with_low[word]), lows[i]);
        }
      }
    }
    float product = 0;
    KITH_UNROLL
    for (int i = 0; i < kRowsEach; ++i) {
      const float sum = warp_sum<kCodeThreads>(static_cast<float>(128 * highs[i] + lows[i]));
      if (part == i) product = sum;
    }
    if (!has_row) continue;
    const ByteBounds bounds = byte_bounds(task.kind, query.bounds, row_bounds, product);
    task.lowers[mine] = bounds.lower;
    least_upper = fminf(least_upper, bounds.upper);  // ignores NaN
    // A row without a bound may be near.
    least_lower = bounds.lower == bounds.lower ? fminf(least_lower, bounds.lower) : -HUGE_VALF;
  }
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) {
    least_upper = fminf(least_upper, __shfl_xor_sync(kAllLanes, least_upper, apart));
    least_lower = fminf(least_lower, __shfl_xor_sync(kAllLanes, least_lower, apart));
  }
  if (lane == 0) {
    float* const uppers = task.minima;
    float* const lowers = task.minima + gridDim.x * kWarps;
    uppers[blockIdx.x * kWarps + thread / 32] = least_upper;
    lowers[blockIdx.x * kWarps + thread / 32] = least_lower;
  }
  if (!arrives_last(&task.words->arrived, gridDim.x - 2)) return;  // the counter starts at -1
  auto* const list = vectors<uint64_t>(memory) + padded_cols(task.cols);
  const bool sure = query.bounds.residual < HUGE_VALF;
  const int count = sure ? choose_candidates(task, list) : -1;
  if (count >= 0) {
    compare_candidates<X>(task, asked, memory, list, count);
    write_few(task.results, 0, list, count < task.results.k ? count : static_cast<int>(task.results.k));
  }
  if (thread != 0) return;
  const uint32_t bad_row = task.bad_row == nullptr ? 0xFFFFFFFFu : __ldcg(task.bad_row);
  *task.report = {query.finite ? 0xFFFFFFFFu : 0u, bad_row, count < 0 ? 1u : 0u};
  task.words->arrived = 0xFFFFFFFFu;  // reset for the next launch
}

}  // namespace

void launch_screened_nearest(const ScreenedNearestTask& task, const InlineQueries& query, int multiprocessors,
                             cudaStream_t stream) {
  const int64_t bytes = std::max<int64_t>(2 * task.screen.stride,
                                          (padded_cols(task.cols) + kRoom) * static_cast<int64_t>(sizeof(uint64_t)));
  const Grid grid = Grid::of(screened_blocks(task.rows.count, multiprocessors), kThreads).with_shared(bytes);
  visit_dtype(task.rows.dtype, [&]<typename X>(StoredAs<X>) {
    if constexpr (sizeof(X) > 1) {
      allow_all_shared_memory(screened_nearest_kernel<X>);
      launch(screened_nearest_kernel<X>, grid, stream, task, query);
    }
  });
}

}  // namespace kith
