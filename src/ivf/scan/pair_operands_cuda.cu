// Prepares the queries of wide vectors' lists for the products of a pass: for each pair of query and list, the query
// minus the list's centre as fp16, with error bounds of its products.
//
// One warp for eight pairs, or for each pair if they are few. The result is in memory, since a row of queries is
// multiplied with every tile of a list's vectors and would otherwise be rounded each time. For distances, a query whose
// reach does not extend to the list is dropped, as in scan_queries_cuda.hpp, and the others are compacted. Time: a read
// of the queries for each of their lists, mostly from the L2 cache, and one write of the fp16 values.
#include "ivf/scan/scan_lists_task_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/warp.hpp"
#include "ivf/scan/scan_queries_cuda.hpp"

#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kWarpPairs = 8;  // one after the other, where there are many
constexpr int64_t kFewPairs = 16384;
constexpr int kLaneCols = 128;  // that a warp has at a time, four a lane

// Rows of f32, four columns at a time; zeros past the last one, or where there is no row.
class FloatRow {
 public:
  __device__ FloatRow(const float* row, int cols)
      : row_(row),
        cols_(row == nullptr ? 0 : cols),
        whole_(cols % 4 == 0 && reinterpret_cast<uintptr_t>(row) % 16 == 0) {}

  __device__ float4 four(int first) const {
    if (!whole_) return four_columns(row_, first, cols_);
    return first < cols_ ? load_vector<float4>(row_ + first) : float4{0, 0, 0, 0};
  }

 private:
  const float* row_;
  int cols_;
  bool whole_;
};

// A query as one list sees it: what is rounded to halves, in the scaled unit and negated.
class PairValues {
 public:
  __device__ PairValues(const FloatRow& query, const FloatRow& centre, bool differences, float query_scale,
                        float centre_scale)
      : query_(query),
        centre_(centre),
        differences_(differences),
        query_scale_(query_scale),
        centre_scale_(centre_scale) {}

  __device__ FourFloats four(int first) const {
    const float4 x = query_.four(first);
    float4 c = {0, 0, 0, 0};
    if (differences_) c = centre_.four(first);
    return {{fmaf(-x.x, query_scale_, c.x * centre_scale_), fmaf(-x.y, query_scale_, c.y * centre_scale_),
             fmaf(-x.z, query_scale_, c.z * centre_scale_), fmaf(-x.w, query_scale_, c.w * centre_scale_)}};
  }
  // What products lack of those with whole vectors, and the query's squared norm; by a lane of a warp.
  __device__ void add_offset(int first, double& offset, double& norm) const {
    const float4 x = query_.four(first);
    const float4 c = centre_.four(first);
    const float values[4] = {x.x, x.y, x.z, x.w};
    const float origins[4] = {c.x, c.y, c.z, c.w};
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const double scaled = static_cast<double>(values[i]) * query_scale_;
      offset = fma(scaled, static_cast<double>(origins[i]) * centre_scale_, offset);
      norm = fma(scaled, scaled, norm);
    }
  }

 private:
  FloatRow query_;
  FloatRow centre_;
  bool differences_;
  float query_scale_;
  float centre_scale_;
};

// By a warp. In f32 for up to 1,024 columns at a time: sums of up to eight squares a lane and column, of four columns
// and of 32 lanes lose no more than 2^-20, which pair_bounds() expects. A difference loses no more than 2^-24 of it.
__device__ RoundedQuery measure(const PairValues& values, int cols, bool with_offset) {
  constexpr int kTogether = 1024;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  double square = 0;
  double moved_square = 0;
  for (int start = 0; start < cols; start += kTogether) {
    float squares[4] = {0, 0, 0, 0};
    float residuals[4] = {0, 0, 0, 0};
    const int end = min(cols, start + kTogether);
#pragma unroll 4
    for (int first = start + 4 * lane; first < end; first += kLaneCols) {
      const FourFloats wanted = values.four(first);
      const FourFloats have = floats_of(halves_of(wanted, 1.0f, {0, 0, 0, 0}));
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float moved = wanted.values[i] - have.values[i];
        squares[i] = fmaf(have.values[i], have.values[i], squares[i]);
        residuals[i] = fmaf(moved, moved, residuals[i]);
      }
    }
    square += static_cast<double>((squares[0] + squares[1]) + (squares[2] + squares[3]));
    moved_square += static_cast<double>((residuals[0] + residuals[1]) + (residuals[2] + residuals[3]));
  }
  square = warp_sum(square);
  moved_square = warp_sum(moved_square);
  RoundedQuery rounded{square, sqrt(moved_square) * (1 + 0x1p-18) + sqrt(square) * 0x1p-23 + 0x1p-60, 0, 0};
  if (!with_offset) return rounded;
  double offset = 0;
  double norm = 0;
  for (int first = 4 * lane; first < cols; first += kLaneCols) values.add_offset(first, offset, norm);
  rounded.offset = warp_sum(offset);
  norm = warp_sum(norm);
  rounded.inverse_norm = norm > 0 ? 1 / sqrt(norm) : norm;
  return rounded;
}

// Whether |x - c| is larger than the query's reach and the list's radius together: no vector is within reach then.
__device__ bool is_far(const RoundedQuery& query, const ListMaxima& list, float reach) {
  const double norm = sqrt(query.squared_norm) * (1 - 0x1p-18);
  const double nearest = norm - list.norm - (query.residual + list.residual) * (1 + 0x1p-18);
  return nearest > reach;  // not where either is NaN
}

// Whether the pass looks at pairs of this number among first and later pairs of all lists.
template <bool kFirst>
__device__ bool is_looked_at(const ScanListsTask& task, int64_t at) {
  const bool later = at % 2 != 0;
  if (kFirst) return !later;
  if (later || task.cut.samples()) return true;
  const int64_t list = at / 2;
  const auto length = static_cast<uint32_t>(task.lists.offsets[list + 1] - task.lists.offsets[list]);
  return task.cut.first_rows_of(length) < length;  // else the first pass has seen all of it
}

// What a lane knows of a pair.
struct LanePair {
  RoundedQuery rounded;
  ProbePair pair;
  int at;       // among first and later pairs of all lists
  float scale;  // of the query
  bool wanted;
};

__device__ PairValues values_of(const ScanListsTask& task, uint32_t query, int64_t list, float query_scale,
                                float scale) {
  const auto cols = static_cast<int>(task.lists.codec.format.cols);
  return {FloatRow(task.queries + static_cast<int64_t>(query) * task.query_stride, cols),
          FloatRow(task.lists.has_origin() ? task.lists.centres + list * cols : nullptr, cols),
          task.lists.key().has_centred(), query_scale, scale};
}

// Measures the warp's pairs one after the other; bounds are then a lane's for each, all at once.
template <bool kFirst>
__global__ void __launch_bounds__(kThreads, 4)
    pair_operands_kernel(const __grid_constant__ ScanListsTask task, uint32_t warp_pairs) {
  ptx::wait_for_kernel_before();
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t begin = (blockIdx.x * kWarps + threadIdx.x / 32) * warp_pairs;
  const int64_t lists = task.lists.lists;
  const uint32_t all = task.starts[2 * lists];
  if (begin >= all) return;
  const auto count = static_cast<int>(min(all - begin, warp_pairs));
  const auto cols = static_cast<int>(task.lists.codec.format.cols);
  const bool differences = task.lists.key().has_centred();
  // Products with whole vectors have no offset.
  const bool with_offset = !differences && (task.lists.has_factors() || task.lists.has_origin());
  const float scale = operand_scale(*task.prepared.largest);
  LanePair mine{};
  if (lane < count) mine.pair = task.pairs[begin + static_cast<uint32_t>(lane)];
  int64_t at = list_of_warp(task.starts, 2 * lists, begin);
  for (int i = 0; i < count; ++i) {
    while (task.starts[at + 1] <= begin + static_cast<uint32_t>(i)) ++at;
    if (!is_looked_at<kFirst>(task, at)) continue;
    const uint32_t query = __shfl_sync(0xFFFFFFFFu, mine.pair.query, i);
    const float query_scale = differences ? scale : task.query_scales[query];
    RoundedQuery rounded = measure(values_of(task, query, at / 2, query_scale, scale), cols, with_offset);
    rounded.residual += unit_rounding(task, scale);
    if (lane == i) mine = {rounded, mine.pair, static_cast<int>(at), query_scale, true};
  }
  const int64_t list = mine.at / 2;
  uint32_t place = begin + static_cast<uint32_t>(lane);
  if (!kFirst && mine.wanted) {
    const bool has_radius = task.lists.key().has_distances();
    mine.wanted = !has_radius || !is_far(mine.rounded, task.prepared.maxima[list], task.reaches[mine.pair.query]);
    if (mine.wanted) {
      const uint32_t middle = task.starts[2 * list + 1];
      const uint32_t before = atomicAdd(task.operands.listed + mine.at, 1u);
      place = mine.at % 2 != 0 ? middle + before : middle - 1 - before;
    }
  }
  if (mine.wanted) {
    ScanQuery bounded;
    const float limit = bound_products<kFirst>(task, static_cast<uint32_t>(list), round_up(cols, 16),
                                               {mine.rounded, mine.pair.query, mine.pair.slot}, bounded);
    task.operands.queries[place] = bounded;
    task.operands.limits[place] = limit;
  }
  const unsigned wanted = __ballot_sync(0xFFFFFFFFu, mine.wanted);
  const auto stride = static_cast<int>(task.operands.stride);
  for (int i = 0; i < count; ++i) {
    if ((wanted >> i & 1) == 0) continue;
    const uint32_t query = __shfl_sync(0xFFFFFFFFu, mine.pair.query, i);
    const int own_at = __shfl_sync(0xFFFFFFFFu, mine.at, i);
    const float query_scale = __shfl_sync(0xFFFFFFFFu, mine.scale, i);
    const PairValues values = values_of(task, query, own_at / 2, query_scale, scale);
    uint16_t* const halves = task.operands.halves + static_cast<int64_t>(__shfl_sync(0xFFFFFFFFu, place, i)) * stride;
#pragma unroll 4
    for (int first = 4 * lane; first < stride; first += kLaneCols) {
      store_vector(halves + first, halves_of(values.four(first), 1.0f, {0, 0, 0, 0}));
    }
  }
}

}  // namespace

void launch_pair_operands(const ScanListsTask& task, bool first, cudaStream_t stream) {
  const int64_t pairs = task.query_count * task.slots;
  const int64_t each = pairs < kFewPairs ? 1 : kWarpPairs;
  const Grid grid = Grid::over(32 * divide_up(pairs, each), kThreads).chained();
  if (first) return launch(pair_operands_kernel<true>, grid, stream, task, static_cast<uint32_t>(each));
  launch(pair_operands_kernel<false>, grid, stream, task, static_cast<uint32_t>(each));
}

}  // namespace kith
