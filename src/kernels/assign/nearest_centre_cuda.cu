#include "kernels/assign/nearest_centre_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "kernels/assign/centre_pairs_cuda.hpp"
#include "kernels/assign/centre_window.hpp"
#include "kernels/distance/lane_sums_cuda.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 132 * 16;
constexpr int kKept = kNearestKept;
constexpr float kLargestFloat = 3.402823466e38f;

__device__ WindowProblem window_problem(KeyKind kind, int64_t cols, const QueryOperand& row, const BaseBounds& centres) {
  WindowProblem problem;
  problem.kind = kind;
  problem.cols = cols;
  problem.scale = window_scale(problem, centres, row);
  return problem;
}

constexpr int kTypicalSamples = 64;

// A value that nine tenths of the samples in shared memory do not exceed, and some more; in all threads.
__device__ float typical_of(const float* samples, int count, float* found) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) {
    int before = 0;
#pragma unroll 16
    for (int j = 0; j < count; ++j) before += samples[j] < samples[i] || (samples[j] == samples[i] && j < i) ? 1 : 0;
    if (before == count * 9 / 10) *found = samples[i] * 1.125f;
  }
  __syncthreads();
  return *found;
}

__device__ OperandBounds typical_row(const LowerTermsTask& task) {
  __shared__ float norms[kTypicalSamples];
  __shared__ float residuals[kTypicalSamples];
  __shared__ float found[2];
  const int count = static_cast<int>(task.rows < kTypicalSamples ? task.rows : kTypicalSamples);
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) {
    const OperandBounds row = task.bounds[i * task.rows / count].operand;
    norms[i] = row.norm < kLargestFloat ? row.norm : 0.0f;
    residuals[i] = row.residual < kLargestFloat ? row.residual : 0.0f;
  }
  __syncthreads();
  return {typical_of(norms, count, &found[0]), typical_of(residuals, count, &found[1])};
}

// The widths of the centres that one thread of a product has of a tile, together: of two tiles, a block's.
__device__ void write_part_widths(float width, float* out) {
  constexpr float kMuch = 2.0f;
  constexpr int kParts = kThreads / kOperandTile * kGroupsPerTile;
  static_assert(kThreads == 2 * kOperandTile);
  __shared__ uint32_t most[kParts];  // bits of floats that are not negative
  __shared__ uint32_t least[kParts];
  const auto i = static_cast<int>(threadIdx.x);
  if (i < kParts) {
    most[i] = 0;
    least[i] = __float_as_uint(HUGE_VALF);
  }
  __syncthreads();
  const int part = i / kOperandTile * kGroupsPerTile + i % 8 / 2;
  atomicMax(&most[part], __float_as_uint(width));
  if (width > 0) atomicMin(&least[part], __float_as_uint(width));
  __syncthreads();
  if (i >= kParts) return;
  const float largest = __uint_as_float(most[i]);
  out[blockIdx.x * kParts + i] = largest > kMuch * __uint_as_float(least[i]) ? -largest : largest;
}

// A thread for each place of the centres' tiles, which come in pairs; every block looks at the same rows.
__global__ void __launch_bounds__(kThreads) lower_terms_kernel(LowerTermsTask task) {
  const bool lowers = task.typical != nullptr;
  const OperandBounds typical = lowers ? typical_row(task) : OperandBounds{0, 0};
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (lowers && place == 0) *task.typical = typical;
  const float term = task.terms[place];
  CentreTerm centre{term, 0.0f};
  if (lowers && term < HUGE_VALF) centre = lowered_term(task.cols, term, task.centres[place], typical);
  task.lowered[place] = centre.term;
  task.widths[place] = centre.width;
  write_part_widths(centre.width, task.part_widths);
}

// The window grows with the least value, which is at most that of a centre on the far side, or of the guess.
__device__ void product_slacks(const SettleTask& task, int64_t row, const QueryOperand& mine, const BaseBounds& base) {
  const WindowProblem problem = window_problem(task.kind, task.cols, mine, base);
  const QueryWindow query{mine.operand, mine.squared_norm, mine.key_offset};
  double least = static_cast<double>(mine.operand.norm) * base.rows.norm + value_error(problem, query, base.rows);
  float limit = kFarthestValue;
  if (task.squared_moves != nullptr) {
    const double moved = sqrt(task.squared_moves[task.labels[row]]);
    const double guess = value_after_move(problem, query, base.rows, task.keys[row], moved, mine.scale);
    if (guess < least) {  // false where it is not a number
      least = guess;
      limit = candidate_window(problem, query, base.rows, least).threshold;
    }
  }
  const double threshold = candidate_window(problem, query, base.rows, least).threshold;
  task.slacks[row] = static_cast<float>(threshold - least + (fabs(threshold) + fabs(least)) * 0x1p-21);
  task.limits[row] = limit < kFarthestValue ? limit : kFarthestValue;
}

__global__ void __launch_bounds__(kThreads) slacks_kernel(SettleTask task) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= task.rows.count) return;
  const QueryOperand mine = task.bounds[row];
  const BaseBounds base = *task.centre_bounds;
  if (task.typical == nullptr) return product_slacks(task, row, mine, base);
  const WindowProblem problem = window_problem(task.kind, task.cols, mine, base);
  const OperandBounds typical = *task.typical;
  const double excess = row_excess(task.cols, mine.operand, typical, base.rows);
  float limit = kFarthestValue;
  if (task.squared_moves != nullptr) {
    const double moved = sqrt(task.squared_moves[task.labels[row]]);
    limit = limit_after_move(problem, mine, excess, base.rows, task.keys[row], moved);
  } else if (task.known != nullptr) {
    limit = limit_after_move(problem, mine, excess, base.rows, task.known[row], 0.0);
  }
  task.slacks[row] = static_cast<float>(row_slack(problem, mine.operand, excess, typical, base.rows));
  task.limits[row] = limit < kFarthestValue ? limit : kFarthestValue;  // false where it is not a number
}

__device__ void insert(NearestRows& best, float value, uint32_t centre) {
  insert_nearest([&](int i) -> float& { return best.values[i]; }, [&](int i) -> uint32_t& { return best.rows[i]; },
                 value, centre);
}

// Puts `row` on a list where `listed`; all lanes of a warp take part.
__device__ void push(bool listed, int64_t row, uint32_t* list, uint32_t* count) {
  const unsigned lanes = __ballot_sync(0xFFFFFFFFu, listed);
  if (lanes == 0) return;
  const unsigned lane = threadIdx.x % 32;
  uint32_t place = 0;
  if (lane == 0) place = atomicAdd(count, static_cast<uint32_t>(__popc(lanes)));
  place = __shfl_sync(0xFFFFFFFFu, place, 0) + static_cast<uint32_t>(__popc(lanes & ((1u << lane) - 1)));
  if (listed) list[place] = static_cast<uint32_t>(row);
}

__device__ CandidateWindow window_of(const SettleTask& task, const QueryOperand& row, const BaseBounds& base,
                                     const NearestRows& best) {
  const WindowProblem problem = window_problem(task.kind, task.cols, row, base);
  if (task.typical == nullptr) {
    return candidate_window(problem, {row.operand, row.squared_norm, row.key_offset}, base.rows, best.values[0]);
  }
  if (best.rows[0] == kNoNearest) return {};
  const float width = task.widths[best.rows[0]];
  const double excess = row_excess(task.cols, row.operand, *task.typical, base.rows);
  return centre_window(problem, row.operand, excess, best.values[0], width);
}

// A thread for each row.
__global__ void __launch_bounds__(kThreads) settle_kernel(SettleTask task) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const bool real = row < task.rows.count;
  bool sure = false;
  int candidates = 0;
  if (real) {
    NearestRows best = task.found[row];
    for (int part = 1; part < task.parts; ++part) {
      const NearestRows other = task.found[part * task.stride + row];
      KITH_UNROLL
      for (int i = 0; i < kKept; ++i) insert(best, other.values[i], other.rows[i]);
      best.values[kKept] = fminf(best.values[kKept], other.values[kKept]);
    }
    const QueryOperand bounds = task.bounds[row];
    const BaseBounds base = *task.centre_bounds;
    const bool measured = bounds.unsure == 0 && base.unsure == 0;
    // All products were above the limit, and so left out.
    const bool farther = task.known != nullptr && task.typical != nullptr && measured && best.rows[0] == kNoNearest &&
                         best.values[kKept] > task.limits[row] && task.limits[row] < kFarthestValue;
    const CandidateWindow window = window_of(task, bounds, base, best);
    sure = window.sure && measured && best.rows[0] != kNoNearest && best.values[kKept] > window.threshold;
    KITH_UNROLL
    for (int i = 0; i < kKept; ++i) {
      candidates += best.values[i] <= window.threshold && best.rows[i] != kNoNearest ? 1 : 0;
    }
    const bool known = window.sure && measured && best.rows[0] != kNoNearest;
    const float of_settled = candidates > 1 || farther ? -kLargestFloat : -HUGE_VALF;
    task.thresholds[row] = sure || farther ? of_settled : known ? window.threshold : HUGE_VALF;
    if (sure) task.labels[row] = static_cast<int32_t>(best.rows[0]);
    if (farther) {
      task.labels[row] = 0;
      task.keys[row] = HUGE_VALF;
      sure = true;
    }
    best.rows[kKept] = static_cast<uint32_t>(candidates);
    if (sure && candidates > 1) task.found[row] = best;
  }
  push(real && !sure, row, task.unsettled, task.unsettled_count);
  push(sure && candidates > 1, row, task.several, task.several_count);
}

// Sixteen threads for each row that has more than one candidate.
template <bool kProduct, typename X>
__global__ void __launch_bounds__(kThreads) choose_kernel(SettleTask task) {
  const int64_t count = *task.several_count;
  const int64_t step = static_cast<int64_t>(gridDim.x) * (kThreads / kCanonicalLanes);
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kCanonicalLanes; i < count;
       i += step) {
    const int64_t row = task.several[i];
    const X* const values = pair_row<X>(task, row);
    const NearestRows best = task.found[row];
    const auto centre = [&](int c) { return task.centres + best.rows[c] * task.cols; };
    double sums[2];
    lane_sums<pair_step<kProduct>(), 2>(values, {centre(0), centre(1)}, task.cols, sums);
    const uint64_t first = packed_pair<kProduct>(task, sums[0], best.rows[0]);
    const uint64_t second = packed_pair<kProduct>(task, sums[1], best.rows[1]);
    uint64_t nearest = first < second ? first : second;
    if (best.rows[kKept] > 2) {
      double sum[1];
      lane_sums<pair_step<kProduct>(), 1>(values, {centre(2)}, task.cols, sum);
      const uint64_t third = packed_pair<kProduct>(task, sum[0], best.rows[2]);
      nearest = third < nearest ? third : nearest;
    }
    if (threadIdx.x % kCanonicalLanes == 0) take_nearest(task, row, nearest);
  }
}

__global__ void __launch_bounds__(kThreads)
    take_found_kernel(const uint64_t* found, int64_t count, const uint32_t* rows, int32_t* labels, float* keys) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t row = rows == nullptr ? i : int64_t{rows[i]};
  labels[row] = static_cast<int32_t>(row_of(found[i]));
  keys[row] = key_of_ordered(ordered_of(found[i]));
}

// A power of two in double is exact: what is rounded is rounded once.
__global__ void __launch_bounds__(kThreads)
    distances_of_keys_kernel(float* keys, int64_t count, bool spherical, double scale) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const float key = keys[i];
  keys[i] = spherical ? 0.0f - key : static_cast<float>(static_cast<double>(__fsqrt_rn(key)) * scale);
}

}  // namespace

void launch_lower_terms(const LowerTermsTask& task, cudaStream_t stream) {
  if (task.rows == 0) return;
  launch(lower_terms_kernel, Grid::over(task.places, kThreads), stream, task);
}

void launch_row_slacks(const SettleTask& task, cudaStream_t stream) {
  launch(slacks_kernel, Grid::over(task.rows.count, kThreads), stream, task);
}

void launch_settle(const SettleTask& task, cudaStream_t stream) {
  launch(settle_kernel, Grid::over(task.rows.count, kThreads), stream, task);
  const int64_t blocks = std::min(divide_up(task.rows.count * kCanonicalLanes, kThreads), kMostBlocks);
  visit_pairs(task, [&]<bool kProduct, typename X>() {
    launch(choose_kernel<kProduct, X>, Grid::of(blocks, kThreads), stream, task);
  });
}

void launch_take_found(const uint64_t* found, int64_t count, const uint32_t* rows, int32_t* labels, float* keys,
                       cudaStream_t stream) {
  launch(take_found_kernel, Grid::over(count, kThreads), stream, found, count, rows, labels, keys);
}

void launch_distances_of_keys(float* keys, int64_t count, bool spherical, int exponent, cudaStream_t stream) {
  launch(distances_of_keys_kernel, Grid::over(count, kThreads), stream, keys, count, spherical,
         std::ldexp(1.0, -exponent));
}

}  // namespace kith
