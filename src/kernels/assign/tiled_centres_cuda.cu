// few_centres_cuda.hpp for some hundred centres of any width, where there is so little to do that products on the
// matrix units, which take several kernels, would take longer.
//
// A block has 32 rows and goes over the centres in tiles of 64, both in stages of 32 columns through shared memory; a
// thread adds up two rows with four centres. All sums of a row stay in shared memory; then sixteen threads have a row
// each: the centres whose sums are near the least (few_centre_screen.hpp), mostly one, compare canonical keys.
//
// Cost: 2 rows x centres x columns f32 operations; the centres are read once for each 32 rows.
#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "kernels/assign/few_centre_screen.hpp"
#include "kernels/assign/few_centres_cuda.hpp"
#include "kernels/distance/lane_sums_cuda.hpp"
#include "kernels/distance/load_four_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kRows = 32;           // of a block
constexpr int kCentres = 64;        // of a tile
constexpr int kFours = 8;           // of a stage: 32 columns
constexpr int kPitch = kFours + 1;  // odd: neighbouring centres are in different banks
constexpr int kAcross = 16;         // threads beside each other, each with every 16th centre and row
constexpr int kMyRows = kRows / (kThreads / kAcross);
constexpr int kMyCentres = kCentres / kAcross;
static_assert(kRows * kFours == kThreads && kRows <= kCentres && kThreads / kCanonicalLanes == kRows / 2);

struct alignas(16) StageFour {
  float values[4];
};

struct TileStage {
  StageFour rows[kRows][kPitch];
  StageFour centres[kCentres][kPitch];
};
constexpr int kUnaskedBytes = 48 * 1024 - 2 * static_cast<int>(sizeof(TileStage));  // of sums, beside two stages

// What a thread brings of a stage: four columns of a row and of two centres.
template <typename X>
class StageLoader {
 public:
  __device__ __forceinline__ StageLoader(const FewCentresTask& task, int64_t first_row)
      : task_(task),
        row_(first_row + static_cast<int>(threadIdx.x) / kFours),
        rows_lie_(rows_aligned(static_cast<const X*>(task.rows.data), task.rows.stride)),
        centres_lie_(rows_aligned(task.centres, task.cols)) {}

  __device__ __forceinline__ void fetch(int64_t first_centre, int64_t first_col) {
    const int64_t col = first_col + 4 * four();
    const bool there = row_ < task_.rows.count;
    const Four<X> given =
        there ? load_four(static_cast<const X*>(task_.rows.data) + row_ * task_.rows.stride, col, task_.cols, rows_lie_)
              : Four<X>{};
    uint32_t largest = 0;
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      row_four_.values[i] = static_cast<float>(given.values[i]);
      largest = max(largest, magnitude_bits(row_four_.values[i]));
    }
    see_row(task_.seen, row_, largest);
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int64_t centre = first_centre + i * kRows + static_cast<int>(threadIdx.x) / kFours;
      const Four<float> values = centre < task_.centre_count
                                     ? load_four(task_.centres + centre * task_.cols, col, task_.cols, centres_lie_)
                                     : Four<float>{};
      KITH_UNROLL
      for (int v = 0; v < 4; ++v) centre_fours_[i].values[v] = values.values[v];
    }
  }

  __device__ __forceinline__ void store(TileStage& stage) const {
    const int vector = static_cast<int>(threadIdx.x) / kFours;
    stage.rows[vector][four()] = row_four_;
    stage.centres[vector][four()] = centre_fours_[0];
    stage.centres[vector + kRows][four()] = centre_fours_[1];
  }

 private:
  __device__ static int four() { return static_cast<int>(threadIdx.x) % kFours; }

  const FewCentresTask& task_;
  const int64_t row_;
  const bool rows_lie_;
  const bool centres_lie_;
  StageFour row_four_;
  StageFour centre_fours_[2];
};

__device__ __forceinline__ void add_stage(const TileStage& stage, int fours, float (&sums)[kMyRows][kMyCentres]) {
  const int across = static_cast<int>(threadIdx.x) % kAcross;
  const int down = static_cast<int>(threadIdx.x) / kAcross;
  for (int f = 0; f < fours; ++f) {
    StageFour centres[kMyCentres];
    KITH_UNROLL
    for (int c = 0; c < kMyCentres; ++c) centres[c] = stage.centres[c * kAcross + across][f];
    KITH_UNROLL
    for (int r = 0; r < kMyRows; ++r) {
      const StageFour row = stage.rows[r * (kRows / kMyRows) + down][f];
      KITH_UNROLL
      for (int c = 0; c < kMyCentres; ++c) {
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) {
          const float difference = row.values[i] - centres[c].values[i];
          sums[r][c] = fmaf(difference, difference, sums[r][c]);
        }
      }
    }
  }
}

// The least sum and the one after it, of sixteen threads.
struct LeastSums {
  float least = HUGE_VALF;
  float next = HUGE_VALF;
  uint32_t centre = 0;

  __device__ __forceinline__ void add(float sum, uint32_t number) {
    next = fminf(next, fmaxf(sum, least));  // a NaN becomes the minimum again: nothing is certain
    centre = sum < least ? number : centre;
    least = fminf(least, sum);
  }
  __device__ __forceinline__ void join(unsigned threads) {
    KITH_UNROLL
    for (int apart = kCanonicalLanes / 2; apart > 0; apart /= 2) {
      const float other_least = __shfl_xor_sync(threads, least, apart);
      const float other_next = __shfl_xor_sync(threads, next, apart);
      const uint32_t other_centre = __shfl_xor_sync(threads, centre, apart);
      next = fminf(fminf(next, other_next), fmaxf(least, other_least));
      // Among equal ones takes the first, so that all threads agree.
      const bool others = other_least < least || (other_least == least && other_centre < centre);
      centre = others ? other_centre : centre;
      least = fminf(least, other_least);
    }
  }
};

// The nearest centre of a row by its sums: by sixteen threads.
template <typename X>
__device__ void settle_row(const FewCentresTask& task, int64_t row, const float* sums) {
  const int lane = static_cast<int>(threadIdx.x) % kCanonicalLanes;
  const int shift = static_cast<int>(threadIdx.x) % 32 / kCanonicalLanes * kCanonicalLanes;
  const unsigned threads = 0xFFFFu << shift;
  const auto count = static_cast<int>(task.centre_count);
  LeastSums found;
  for (int c = lane; c < count; c += kCanonicalLanes) found.add(sums[c], static_cast<uint32_t>(c));
  found.join(threads);
  if (row == task.probe && found.least > probe_limit(task.cols)) task.seen->probe_near = 0;
  const float limit = few_centre_limit(found.least, task.cols);
  const X* const values = static_cast<const X*>(task.rows.data) + row * task.rows.stride;
  const auto exact = [&](uint32_t centre) {
    double sum[1];
    lane_sums<KeyKind::squared_l2, 1>(values, {task.centres + centre * task.cols}, task.cols, sum);
    return pack_neighbor(ordered_key(canonical_key<KeyKind::squared_l2>(sum[0], 0, 0)), centre);
  };
  uint32_t label = found.centre;
  uint64_t nearest = kPadding;
  if (found.next > limit) {
    if (task.keys != nullptr) nearest = exact(label);
  } else {
    for (int first = 0; first < count; first += kCanonicalLanes) {
      const bool near = first + lane < count && !(sums[first + lane] > limit);
      unsigned left = __ballot_sync(threads, near) >> shift & 0xFFFFu;
      while (left != 0) {
        const uint64_t other = exact(static_cast<uint32_t>(first + __ffs(static_cast<int>(left)) - 1));
        left &= left - 1;
        nearest = other < nearest ? other : nearest;
      }
    }
    label = row_of(nearest);
  }
  if (lane != 0) return;
  task.labels[row] = static_cast<int32_t>(label);
  if (task.keys != nullptr) task.keys[row] = key_of_ordered(ordered_of(nearest));
}

template <typename X>
__global__ void __launch_bounds__(kThreads, 3) tiled_centres_kernel(FewCentresTask task) {
  __shared__ TileStage stages[2];
  extern __shared__ float all_sums[];  // rows x centres
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kRows;
  const int across = static_cast<int>(threadIdx.x) % kAcross;
  const int down = static_cast<int>(threadIdx.x) / kAcross;
  constexpr int kCols = 4 * kFours;
  StageLoader<X> loader(task, first_row);
  loader.fetch(0, 0);
  int stage = 0;
  for (int64_t first_centre = 0; first_centre < task.centre_count; first_centre += kCentres) {
    float sums[kMyRows][kMyCentres] = {};
    for (int64_t first_col = 0; first_col < task.cols; first_col += kCols) {
      loader.store(stages[stage]);
      __syncthreads();  // of the stage before last all have been read
      const bool more = first_col + kCols < task.cols;
      if (more) {
        loader.fetch(first_centre, first_col + kCols);
      } else if (first_centre + kCentres < task.centre_count) {
        loader.fetch(first_centre + kCentres, 0);
      }
      add_stage(stages[stage], more ? kFours : static_cast<int>(divide_up(task.cols - first_col, 4)), sums);
      stage = 1 - stage;
    }
    KITH_UNROLL
    for (int r = 0; r < kMyRows; ++r) {
      KITH_UNROLL
      for (int c = 0; c < kMyCentres; ++c) {
        const int64_t centre = first_centre + c * kAcross + across;
        if (centre < task.centre_count) {
          all_sums[(r * (kRows / kMyRows) + down) * task.centre_count + centre] = sums[r][c];
        }
      }
    }
  }
  __syncthreads();
  for (int r = static_cast<int>(threadIdx.x) / kCanonicalLanes; r < kRows; r += kThreads / kCanonicalLanes) {
    if (first_row + r < task.rows.count) settle_row<X>(task, first_row + r, all_sums + r * task.centre_count);
  }
}

}  // namespace

void launch_tiled_centres(const FewCentresTask& task, cudaStream_t stream) {
  const int64_t bytes = array_bytes<float>(kRows * task.centre_count);
  visit_dtype(task.rows.dtype, [&](auto stored) {
    const auto kernel = tiled_centres_kernel<typename decltype(stored)::type>;
    if (bytes > kUnaskedBytes) allow_all_shared_memory(kernel);
    launch(kernel, Grid::of(divide_up(task.rows.count, kRows), kThreads).with_shared(bytes), stream, task);
  });
}

}  // namespace kith
