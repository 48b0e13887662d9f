#include "kernels/assign/few_centres_cuda.hpp"

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/assign/few_centre_screen.hpp"
#include "kernels/assign/nearest_centre_cuda.hpp"
#include "kernels/distance/load_four_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksEach = 8;  // per multiprocessor; each loops over rows

template <int kCols>
struct RowValues {
  float values[kCols];
};

// Columns past the last one are zero, as the centres' are: they add nothing.
template <int kCols>
__device__ __forceinline__ RowValues<kCols> load_row(const DeviceRowsView& rows, int64_t row, int64_t cols,
                                                     bool aligned) {
  RowValues<kCols> loaded;
  const std::byte* const from = row_bytes_at(rows, row);
  if constexpr (kCols == 1) {
    loaded.values[0] = static_cast<float>(stored_value(from, rows.dtype, 0));
  } else if (rows.dtype == DType::f32) {
    KITH_UNROLL
    for (int c = 0; c < kCols; c += 4) {
      const Four<float> four = load_four(vectors<float>(from), c, cols, aligned);
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) loaded.values[c + i] = four.values[i];
    }
  } else {
    KITH_UNROLL
    for (int c = 0; c < kCols; c += 4) {
      double four[4];
      widen_four(fetch_four(from, rows.dtype, c, cols, aligned), rows.dtype, four);
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) loaded.values[c + i] = static_cast<float>(four[i]);
    }
  }
  return loaded;
}

template <int kCols>
__device__ __forceinline__ float screened(const RowValues<kCols>& row, const float* centre) {
  if constexpr (kCols == 1) {
    const float difference = row.values[0] - centre[0];
    return difference * difference;
  } else {
    float sums[4] = {};
    KITH_UNROLL
    for (int c = 0; c < kCols; c += 4) {
      const auto four = load_vector<float4>(centre + c);
      const float with[4] = {four.x, four.y, four.z, four.w};
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float difference = row.values[c + i] - with[i];
        sums[i] = fmaf(difference, difference, sums[i]);
      }
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

// canonical_tree of lanes in registers. Those past the last column are zero, and are not added.
template <int kCols, int kApart>
__device__ __forceinline__ void join_lanes(double (&lanes)[kCanonicalLanes]) {
  KITH_UNROLL
  for (int j = 0; j < kApart; ++j) {
    if (j + kApart < kCols) lanes[j] += lanes[j + kApart];
  }
  if constexpr (kApart > 1) join_lanes<kCols, kApart / 2>(lanes);
}

template <int kCols, bool kProduct>
__device__ __forceinline__ float exact_key(const RowValues<kCols>& row, const float* centre) {
  constexpr KeyKind kKind = kProduct ? KeyKind::inner_product : KeyKind::squared_l2;
  double lanes[kCanonicalLanes] = {};
  KITH_UNROLL
  for (int c = 0; c < kCols; ++c) {
    double& lane = lanes[c % kCanonicalLanes];
    lane = canonical_step<kKind>(lane, static_cast<double>(row.values[c]), static_cast<double>(centre[c]), 0, 0);
  }
  join_lanes<kCols, kCanonicalLanes / 2>(lanes);
  return canonical_key<kKind>(lanes[0], 0, 0);
}

template <int kCols, bool kProduct>
__device__ __forceinline__ uint64_t nearest_exactly(const RowValues<kCols>& row, const float* centres, int count,
                                                    float limit) {
  uint64_t nearest = kPadding;
#pragma unroll 1
  for (int c = 0; c < count; ++c) {
    const float* const centre = centres + c * kCols;
    if constexpr (!kProduct) {
      if (screened(row, centre) > limit) continue;  // NaN stays
    }
    const uint64_t found =
        pack_neighbor(ordered_key(exact_key<kCols, kProduct>(row, centre)), static_cast<uint32_t>(c));
    nearest = found < nearest ? found : nearest;
  }
  return nearest;
}

template <int kCols, bool kProduct>
__global__ void __launch_bounds__(kThreads) few_centres_kernel(FewCentresTask task) {
  extern __shared__ __align__(16) float centres[];
  const int count = static_cast<int>(task.centre_count);
  for (int i = static_cast<int>(threadIdx.x); i < count * kCols; i += kThreads) {
    const int col = i % kCols;
    centres[i] = col < task.cols ? task.centres[i / kCols * task.cols + col] : 0.0f;
  }
  __syncthreads();
  const bool aligned = fours_aligned(task.rows);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; row < task.rows.count; row += step) {
    const RowValues<kCols> values = load_row<kCols>(task.rows, row, task.cols, aligned);
    if (task.seen != nullptr) {
      uint32_t largest = 0;
      KITH_UNROLL
      for (int c = 0; c < kCols; ++c) largest = max(largest, magnitude_bits(values.values[c]));
      see_row(task.seen, row, largest);
    }
    int label = 0;
    float limit = HUGE_VALF;
    bool certain = false;
    if constexpr (!kProduct) {
      float least = HUGE_VALF;
      float second = HUGE_VALF;
#pragma unroll 2
      for (int c = 0; c < count; ++c) {
        const float sum = screened(values, centres + c * kCols);
        second = fminf(second, fmaxf(sum, least));
        label = sum < least ? c : label;
        least = fminf(least, sum);
      }
      limit = few_centre_limit(least, kCols);
      certain = second > limit;
      if (row == task.probe && least > probe_limit(task.cols)) task.seen->probe_near = 0;
    }
    if (!certain) {
      label = static_cast<int>(row_of(nearest_exactly<kCols, kProduct>(values, centres, count, limit)));
    }
    task.labels[row] = label;
    if (task.keys != nullptr) {
      task.keys[row] = key_of_ordered(ordered_key(exact_key<kCols, kProduct>(values, centres + label * kCols)));
    }
  }
}

template <int kCols>
void launch_width(const FewCentresTask& task, int multiprocessors, cudaStream_t stream) {
  const auto kernel =
      task.kind == KeyKind::inner_product ? few_centres_kernel<kCols, true> : few_centres_kernel<kCols, false>;
  const int64_t blocks =
      std::min<int64_t>(divide_up(task.rows.count, kThreads), int64_t{multiprocessors} * kBlocksEach);
  launch(kernel, Grid::of(blocks, kThreads).with_shared(array_bytes<float>(task.centre_count * kCols)), stream, task);
}

}  // namespace

void launch_compare_pairs(AssignForm form, const FewCentresTask& task, int multiprocessors, cudaStream_t stream) {
  if (form == AssignForm::registers) return launch_few_centres(task, multiprocessors, stream);
  if (form == AssignForm::two_rows) return launch_wide_few_centres(task, multiprocessors, stream);
  if (form == AssignForm::tiles) return launch_tiled_centres(task, stream);
  SettleTask all;
  all.kind = task.kind;
  all.rows = task.rows;
  all.centres = task.centres;
  all.cols = task.cols;
  all.labels = task.labels;
  all.keys = task.keys;
  launch_search_all(all, task.centre_count, task.seen != nullptr && task.check_finite ? &task.seen->first_bad : nullptr,
                    stream);
}

void launch_few_centres(const FewCentresTask& task, int multiprocessors, cudaStream_t stream) {
  switch (few_centre_width(task.cols)) {
    case 1: return launch_width<1>(task, multiprocessors, stream);
    case 4: return launch_width<4>(task, multiprocessors, stream);
    case 8: return launch_width<8>(task, multiprocessors, stream);
    case 16: return launch_width<16>(task, multiprocessors, stream);
    case 24: return launch_width<24>(task, multiprocessors, stream);
    case 32: return launch_width<32>(task, multiprocessors, stream);
    case 48: return launch_width<48>(task, multiprocessors, stream);
    default: return launch_width<64>(task, multiprocessors, stream);
  }
}

}  // namespace kith
