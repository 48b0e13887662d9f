// Where rows are read, four threads share one and compute four lanes of the canonical sum each; sixteen, a lane each, where
// rows are few and scattered, and the time is that of their way from memory.
#include "cluster/nearest_centre_cuda.hpp"

#include "cluster/centre_search_plan.hpp"
#include "cluster/centre_window.hpp"
#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "kernels/distance/lane_sums_cuda.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/distance/row_threads_cuda.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <algorithm>
#include <type_traits>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kFewThreads = 512;
constexpr int64_t kMostBlocks = 132 * 16;
constexpr int64_t kMostFewBlocks = 132 * 4;
constexpr int kLanes = kRowThreadLanes;
constexpr int kKept = kNearestKept;
constexpr float kLargestFloat = 3.402823466e38f;

__device__ WindowProblem window_problem(KeyKind kind, int64_t cols, const QueryFacts& row, const BaseFacts& centres) {
  WindowProblem problem;
  problem.kind = kind;
  problem.cols = cols;
  problem.scale = window_scale(problem, centres, row);
  return problem;
}

constexpr int kTypicalSamples = 64;

// Of the samples in shared memory the one that nine tenths do not exceed, and some more; in all threads.
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

__device__ OperandFacts typical_row(const LowerTermsTask& task) {
  __shared__ float norms[kTypicalSamples];
  __shared__ float residuals[kTypicalSamples];
  __shared__ float found[2];
  const int count = static_cast<int>(task.rows < kTypicalSamples ? task.rows : kTypicalSamples);
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) {
    const OperandFacts row = task.facts[i * task.rows / count].operand;
    norms[i] = row.norm < kLargestFloat ? row.norm : 0.0f;
    residuals[i] = row.residual < kLargestFloat ? row.residual : 0.0f;
  }
  __syncthreads();
  return {typical_of(norms, count, &found[0]), typical_of(residuals, count, &found[1])};
}

// A thread for each place of the centres' tiles; every block looks at the same rows.
__global__ void __launch_bounds__(kThreads) lower_terms_kernel(LowerTermsTask task) {
  const bool lowers = task.typical != nullptr;
  const OperandFacts typical = lowers ? typical_row(task) : OperandFacts{0, 0};
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (lowers && place == 0) *task.typical = typical;
  if (place >= task.places) return;
  const float term = task.terms[place];
  CentreTerm centre{term, 0.0f};
  if (lowers && term < HUGE_VALF) centre = lowered_term(task.cols, term, task.centres[place], typical);
  float* const out = task.lowered + place / kOperandTile * (2 * kOperandTile) + place % kOperandTile;
  out[0] = centre.term;
  out[kOperandTile] = centre.width;
  if (task.marking != nullptr) task.marking[place] = centre.term;
}

// The window grows with the least value, which is at most that of a centre on the far side, or of the guess.
__device__ void product_slacks(const SlacksTask& task, int64_t row, const QueryFacts& mine, const BaseFacts& base) {
  const WindowProblem problem = window_problem(task.kind, task.cols, mine, base);
  const QueryWindow query{mine.operand, mine.squared_norm, mine.key_offset};
  double least = static_cast<double>(mine.operand.norm) * base.rows.norm + value_error(problem, query, base.rows);
  float limit = kFarthestValue;
  if (task.labels != nullptr) {
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

__global__ void __launch_bounds__(kThreads) slacks_kernel(SlacksTask task) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= task.rows) return;
  const QueryFacts mine = task.facts[row];
  const BaseFacts base = *task.centre_facts;
  if (task.typical == nullptr) return product_slacks(task, row, mine, base);
  const WindowProblem problem = window_problem(task.kind, task.cols, mine, base);
  const OperandFacts typical = *task.typical;
  const double excess = row_excess(task.cols, mine.operand, typical, base.rows);
  float limit = kFarthestValue;
  if (task.labels != nullptr) {
    const double moved = sqrt(task.squared_moves[task.labels[row]]);
    limit = limit_after_move(problem, mine, excess, base.rows, task.keys[row], moved);
  }
  task.slacks[row] = static_cast<float>(row_slack(problem, mine.operand, excess, typical, base.rows));
  task.limits[row] = limit < kFarthestValue ? limit : kFarthestValue;  // false where it is not a number
}

template <bool kProduct>
constexpr KeyKind step_of() {
  return kProduct ? KeyKind::inner_product : KeyKind::squared_l2;
}

// How rows and centres lie: whether four neighbouring values can be read at a time.
struct Alignment {
  bool rows;
  bool centres;
};

template <typename X>
__device__ Alignment alignment_of(const SettleTask& task) {
  return {rows_aligned(static_cast<const X*>(task.rows.data), task.rows.stride),
          rows_aligned(task.centres, task.cols)};
}

template <typename X>
__device__ const X* row_at(const SettleTask& task, int64_t row) {
  return static_cast<const X*>(task.rows.data) + row * task.rows.stride;
}

template <bool kAligned, typename X>
__device__ __forceinline__ Four<X> load_whole_four(const X* from) {
  if constexpr (kAligned) return *reinterpret_cast<const Four<X>*>(from);
  return {from[0], from[1], from[2], from[3]};
}

// The canonical sums of kRows rows with kCentres centres, right in the first of the four threads that share them.
template <bool kProduct, int kRows, int kCentres, typename X>
__device__ __forceinline__ void pair_sums(const X* const (&rows)[kRows], const float* const (&centres)[kCentres],
                                          int64_t cols, const Alignment& aligned, double (&sums)[kRows][kCentres]) {
  constexpr KeyKind kKind = step_of<kProduct>();
  // Steps whose values are read before they are added: memory is far away.
  constexpr int kAhead = kRows + kCentres == 2 ? 8 : kRows + kCentres == 3 ? 4 : 2;
  const unsigned threads = row_threads();
  double lanes[kRows][kCentres][kLanes] = {};
  const auto add = [&](const Four<X>& values, const Four<float>& with, int r, int c) {
    KITH_UNROLL
    for (int i = 0; i < kLanes; ++i) {
      const auto q = static_cast<double>(static_cast<float>(values.values[i]));
      lanes[r][c][i] = canonical_step<kKind>(lanes[r][c][i], q, static_cast<double>(with.values[i]), 0, 0);
    }
  };
  int64_t first = kLanes * (static_cast<int>(threadIdx.x) % kRowThreads);
  const auto add_whole_steps = [&]<bool kAligned>(std::bool_constant<kAligned>) {
    for (; first + (kAhead - 1) * kCanonicalLanes + kLanes <= cols; first += kAhead * kCanonicalLanes) {
      Four<X> values[kRows][kAhead];
      Four<float> with[kCentres][kAhead];
      KITH_UNROLL
      for (int a = 0; a < kAhead; ++a) {
        const int64_t col = first + a * kCanonicalLanes;
        KITH_UNROLL
        for (int r = 0; r < kRows; ++r) values[r][a] = load_whole_four<kAligned>(rows[r] + col);
        KITH_UNROLL
        for (int c = 0; c < kCentres; ++c) with[c][a] = load_whole_four<kAligned>(centres[c] + col);
      }
      KITH_UNROLL
      for (int a = 0; a < kAhead; ++a) {
        KITH_UNROLL
        for (int r = 0; r < kRows; ++r) {
          KITH_UNROLL
          for (int c = 0; c < kCentres; ++c) add(values[r][a], with[c][a], r, c);
        }
      }
    }
  };
  if (aligned.rows && aligned.centres) {
    add_whole_steps(std::true_type());
  } else {
    add_whole_steps(std::false_type());
  }
  for (; first < cols; first += kCanonicalLanes) {
    KITH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Four<X> values = load_four(rows[r], first, cols, aligned.rows);
      KITH_UNROLL
      for (int c = 0; c < kCentres; ++c) add(values, load_four(centres[c], first, cols, aligned.centres), r, c);
    }
  }
  KITH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    KITH_UNROLL
    for (int c = 0; c < kCentres; ++c) sums[r][c] = join_row_threads(lanes[r][c], threads);
  }
}

template <bool kProduct, typename X>
__device__ double pair_sum(const X* row, const float* centre, int64_t cols, const Alignment& aligned) {
  double sum[1][1];
  pair_sums<kProduct, 1, 1>({row}, {centre}, cols, aligned, sum);
  return sum[0][0];
}

// The key of a canonical sum. Roots make some keys equal that are not, so a search by l2 compares roots.
template <bool kProduct>
__device__ float key_of_sum(const SettleTask& task, double sum) {
  if (kProduct) return canonical_key<KeyKind::inner_product>(sum, 0, 0);
  return task.kind == KeyKind::l2 ? canonical_key<KeyKind::l2>(sum, 0, 0)
                                  : canonical_key<KeyKind::squared_l2>(sum, 0, 0);
}

template <bool kProduct>
__device__ uint64_t packed(const SettleTask& task, double sum, uint32_t centre) {
  return pack_neighbor(ordered_key(key_of_sum<kProduct>(task, sum)), centre);
}

__device__ void take(const SettleTask& task, int64_t row, uint64_t nearest) {
  task.labels[row] = static_cast<int32_t>(row_of(nearest));
  task.keys[row] = key_of_ordered(ordered_of(nearest));
}

__device__ void insert(NearestRows& best, float value, uint32_t centre) {
  insert_nearest([&](int i) -> float& { return best.values[i]; }, [&](int i) -> uint32_t& { return best.rows[i]; },
                 value, centre);
}

__device__ uint64_t least_of_warp(uint64_t value) {
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) {
    const uint64_t other = __shfl_xor_sync(0xFFFFFFFFu, value, apart);
    value = other < value ? other : value;
  }
  return value;
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

__device__ CandidateWindow window_of(const SettleTask& task, const QueryFacts& row, const BaseFacts& base,
                                     const NearestRows& best) {
  const WindowProblem problem = window_problem(task.kind, task.cols, row, base);
  if (task.typical == nullptr) {
    return candidate_window(problem, {row.operand, row.squared_norm, row.key_offset}, base.rows, best.values[0]);
  }
  if (best.rows[0] == kNoNearest) return {};
  const int64_t centre = best.rows[0];
  const float width = task.lowered[centre / kOperandTile * (2 * kOperandTile) + kOperandTile + centre % kOperandTile];
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
    const QueryFacts facts = task.facts[row];
    const BaseFacts base = *task.centre_facts;
    const CandidateWindow window = window_of(task, facts, base, best);
    sure = window.sure && facts.unsure == 0 && base.unsure == 0 && best.rows[0] != kNoNearest &&
           best.values[kKept] > window.threshold;
    KITH_UNROLL
    for (int i = 0; i < kKept; ++i) {
      candidates += best.values[i] <= window.threshold && best.rows[i] != kNoNearest ? 1 : 0;
    }
    const bool known = window.sure && facts.unsure == 0 && base.unsure == 0 && best.rows[0] != kNoNearest;
    const float of_settled = candidates > 1 ? -kLargestFloat : -HUGE_VALF;
    task.thresholds[row] = sure ? of_settled : known ? window.threshold : HUGE_VALF;
    if (sure) task.labels[row] = static_cast<int32_t>(best.rows[0]);
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
    const X* const values = row_at<X>(task, row);
    const NearestRows best = task.found[row];
    const auto centre = [&](int c) { return task.centres + best.rows[c] * task.cols; };
    double sums[2];
    lane_sums<step_of<kProduct>(), 2>(values, {centre(0), centre(1)}, task.cols, sums);
    const uint64_t first = packed<kProduct>(task, sums[0], best.rows[0]);
    const uint64_t second = packed<kProduct>(task, sums[1], best.rows[1]);
    uint64_t nearest = first < second ? first : second;
    if (best.rows[kKept] > 2) {
      double sum[1];
      lane_sums<step_of<kProduct>(), 1>(values, {centre(2)}, task.cols, sum);
      const uint64_t third = packed<kProduct>(task, sum[0], best.rows[2]);
      nearest = third < nearest ? third : nearest;
    }
    if (threadIdx.x % kCanonicalLanes == 0) take(task, row, nearest);
  }
}

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
    const double sum = pair_sum<kProduct>(values, task.centres + number * task.cols, task.cols, aligned);
    const uint64_t found = packed<kProduct>(task, sum, number);
    if (lane % kRowThreads == 0 && found < nearest) nearest = found;
  }
  __syncwarp();
  return least_of_warp(nearest);
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
  const Alignment aligned = alignment_of<X>(task);
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
    const uint64_t nearest = nearest_by_warp<kProduct>(task, row_at<X>(task, row), listed, aligned,
                                                       [&](int64_t at) { return uint32_t{list[at]}; });
    if (lane == 0) take(task, row, nearest);
  }
}

// A warp for each row.
template <bool kProduct, typename X>
__global__ void __launch_bounds__(kThreads) search_all_kernel(SettleTask task, int64_t clusters, uint32_t* first_bad) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Alignment aligned = alignment_of<X>(task);
  const int64_t step = static_cast<int64_t>(gridDim.x) * (kThreads / 32);
  for (int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32; row < task.rows.count;
       row += step) {
    const X* const values = row_at<X>(task, row);
    bool bad = false;
    for (int64_t col = lane; first_bad != nullptr && col < task.cols; col += 32) {
      const auto value = static_cast<float>(values[col]);
      bad = bad || value - value != 0.0f;
    }
    if (bad) atomicMin(first_bad, static_cast<uint32_t>(row));
    __syncwarp();
    const uint64_t nearest = nearest_by_warp<kProduct>(task, values, clusters, aligned,
                                                       [](int64_t i) { return static_cast<uint32_t>(i); });
    if (lane == 0) take(task, row, nearest);
  }
}

// The keys of rows that have labels.
template <bool kProduct, typename X>
__global__ void __launch_bounds__(kThreads) row_keys_kernel(SettleTask task) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kRowThreads;
  if (row >= task.rows.count || task.thresholds[row] > -HUGE_VALF) return;
  const double sum = pair_sum<kProduct>(row_at<X>(task, row), task.centres + task.labels[row] * task.cols, task.cols,
                                        alignment_of<X>(task));
  if (threadIdx.x % kRowThreads == 0) task.keys[row] = key_of_ordered(ordered_key(key_of_sum<kProduct>(task, sum)));
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
    rows[r] = row_at<X>(task, numbers[r]);
    nearest[r] = kPadding;
  }
  for (int64_t c = threadIdx.x / kRowThreads; c < clusters; c += kFewThreads / kRowThreads) {
    double sums[kRows][1];
    pair_sums<kProduct, kRows, 1>(rows, {task.centres + c * task.cols}, task.cols, aligned, sums);
    KITH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const uint64_t found = packed<kProduct>(task, sums[r][0], static_cast<uint32_t>(c));
      if (threadIdx.x % kRowThreads == 0 && found < nearest[r]) nearest[r] = found;
    }
  }
  __syncwarp();
  KITH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    nearest[r] = least_of_warp(nearest[r]);
    if (threadIdx.x % 32 == 0) warps[r][threadIdx.x / 32] = nearest[r];
  }
  __syncthreads();
  KITH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (threadIdx.x != static_cast<unsigned>(r) || first + r >= count) continue;
    uint64_t least = kPadding;
    for (const uint64_t other : warps[r]) least = other < least ? other : least;
    take(task, numbers[r], least);
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
  const Alignment aligned = alignment_of<X>(task);
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

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>(divide_up(threads, kThreads)); }

}  // namespace

void launch_lower_terms(const LowerTermsTask& task, cudaStream_t stream) {
  if (task.rows == 0) return;
  lower_terms_kernel<<<blocks_for(task.places), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("lower_terms_kernel");
}

void launch_row_slacks(const SlacksTask& task, cudaStream_t stream) {
  if (task.rows == 0) return;
  slacks_kernel<<<blocks_for(task.rows), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("slacks_kernel");
}

void launch_choose_marking(const SettleTask& task, const UnsettledTask& unsettled, cudaStream_t stream) {
  choose_marking_kernel<<<1, 1, 0, stream>>>(task.unsettled_count, unsettled);
  KITH_CUDA_CHECK_LAUNCH("choose_marking_kernel");
}

void launch_search_all(const SettleTask& task, int64_t clusters, uint32_t* first_bad, cudaStream_t stream) {
  if (task.rows.count == 0) return;
  const bool product = task.kind == KeyKind::inner_product;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(divide_up(task.rows.count * 32, kThreads), kMostBlocks));
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    const auto kernel = product ? search_all_kernel<true, X> : search_all_kernel<false, X>;
    kernel<<<blocks, kThreads, 0, stream>>>(task, clusters, first_bad);
  });
  KITH_CUDA_CHECK_LAUNCH("search_all_kernel");
}

void launch_settle_unsettled(const SettleTask& task, const UnsettledTask& unsettled, cudaStream_t stream) {
  const bool product = task.kind == KeyKind::inner_product;
  const int64_t marked = std::min<int64_t>(divide_up(task.rows.count * 32, kThreads), kMostBlocks);
  const int64_t few = std::min<int64_t>({task.rows.count, unsettled.most_few, kMostFewBlocks});
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    const auto by_marks = product ? settle_marked_kernel<true, X> : settle_marked_kernel<false, X>;
    if (task.rows.count > unsettled.most_few) {
      by_marks<<<static_cast<unsigned>(marked), kThreads, 0, stream>>>(task, unsettled);
    }
    const auto by_all = product ? search_few_kernel<true, X> : search_few_kernel<false, X>;
    if (few > 0) {
      by_all<<<static_cast<unsigned>(few), kFewThreads, 0, stream>>>(task, unsettled.clusters, unsettled.most_few);
    }
  });
  KITH_CUDA_CHECK_LAUNCH("search_few_kernel");
}

void launch_search_few(const SettleTask& task, int64_t clusters, int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  const bool product = task.kind == KeyKind::inner_product;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(count, kMostFewBlocks));
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    const auto kernel = product ? search_few_kernel<true, X> : search_few_kernel<false, X>;
    kernel<<<blocks, kFewThreads, 0, stream>>>(task, clusters, static_cast<uint32_t>(count));
  });
  KITH_CUDA_CHECK_LAUNCH("search_few_kernel");
}

void launch_settle(const SettleTask& task, cudaStream_t stream) {
  if (task.rows.count == 0) return;
  settle_kernel<<<blocks_for(task.rows.count), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("settle_kernel");
  const auto blocks =
      static_cast<unsigned>(std::min<int64_t>(divide_up(task.rows.count * kCanonicalLanes, kThreads), kMostBlocks));
  const bool product = task.kind == KeyKind::inner_product;
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    const auto kernel = product ? choose_kernel<true, X> : choose_kernel<false, X>;
    kernel<<<blocks, kThreads, 0, stream>>>(task);
  });
  KITH_CUDA_CHECK_LAUNCH("choose_kernel");
}

void launch_row_keys(const SettleTask& task, cudaStream_t stream) {
  if (task.rows.count == 0) return;
  const bool product = task.kind == KeyKind::inner_product;
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    const auto kernel = product ? row_keys_kernel<true, X> : row_keys_kernel<false, X>;
    kernel<<<blocks_for(task.rows.count * kRowThreads), kThreads, 0, stream>>>(task);
  });
  KITH_CUDA_CHECK_LAUNCH("row_keys_kernel");
}

}  // namespace kith
