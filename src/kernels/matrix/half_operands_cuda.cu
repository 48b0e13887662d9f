// Operands of halves: a warp for each row, four values a lane at a time.
#include "core/dtype_visit.hpp"
#include "cuda/launch.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/matrix/operand_blocks_cuda.hpp"
#include "kernels/matrix/operands_cuda.hpp"

#include <cuda_fp16.h>

#include <algorithm>
#include <type_traits>

namespace kith {
namespace {

constexpr int64_t kSamples = 256;
constexpr int kSampleCols = 32;
constexpr int kSampleSlices = 8;

enum class Form { plain, centred, unit };

constexpr Form form_of(KeyKind kind) {
  return kind == KeyKind::inner_product ? Form::plain : kind == KeyKind::cosine ? Form::unit : Form::centred;
}

__device__ float warp_sum(float value) {
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(kWholeWarp, value, apart);
  return value;
}

__device__ float warp_largest(float value) {
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, apart));
  return value;
}

template <typename T>
__global__ void __launch_bounds__(kSampleCols* kSampleSlices)
    sample_kernel(DeviceRowsView rows, int64_t cols, Form form, float* centre, BaseFacts* facts) {
  __shared__ double sums[kSampleSlices][kSampleCols];
  __shared__ float means[kSampleCols];
  const int64_t samples = rows.count < kSamples ? rows.count : kSamples;
  const int col_in_block = static_cast<int>(threadIdx.x) % kSampleCols;
  const int slice = static_cast<int>(threadIdx.x) / kSampleCols;
  const int64_t col = static_cast<int64_t>(blockIdx.x) * kSampleCols + col_in_block;
  const auto value = [&](int64_t sample) {
    return static_cast<float>(rows.row<T>(sample * rows.count / samples)[col]);
  };
  double sum = 0;
  if (form == Form::centred && col < cols) {
    for (int64_t s = slice; s < samples; s += kSampleSlices) sum += value(s);
  }
  sums[slice][col_in_block] = sum;
  __syncthreads();
  if (slice == 0) {
    double total = 0;
    for (int s = 0; s < kSampleSlices; ++s) total += sums[s][col_in_block];
    const float mean = static_cast<float>(total / static_cast<double>(samples));
    means[col_in_block] = mean - mean == 0.0f ? mean : 0.0f;
    if (col < cols) centre[col] = means[col_in_block];
  }
  __syncthreads();
  float largest = 0;
  if (col < cols && form != Form::unit) {
    for (int64_t s = slice; s < samples; s += kSampleSlices) {
      const float magnitude = fabsf(value(s) - means[col_in_block]);
      if (magnitude <= 3e38f) largest = fmaxf(largest, magnitude);
    }
  }
  if (form == Form::unit) largest = 1.0f;
  largest = warp_largest(largest);
  if (threadIdx.x % 32 == 0) raise(&facts->sample_largest, largest);
}

struct HalfSums {
  float squares = 0;
  float residual_squares = 0;
  bool finite = true;
  bool inside = true;  // no value past the largest half
};

// Reads a row, writes its operand.
template <Form kForm, bool kNegated, typename T>
__device__ HalfSums convert_half(const DeviceRowsView& rows, int64_t cols, int64_t row, const float* centre,
                                 float scale, bool aligned, std::byte* operands) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t chunks = operand_chunks(cols, 2);
  HalfSums sums;
  const bool real = row < rows.count;
  const T* const from = real ? rows.row<T>(row) : nullptr;
  double inverse_norm = 1;
  if constexpr (kForm == Form::unit) inverse_norm = real ? rows.inverse_norms[row] : 0.0;
  for (int64_t first = 4 * lane; first < chunks * (kChunkBytes / 2); first += 128) {
    __half halves[4] = {};
    if (real) {
      const Four<T> stored = load_four(from, first, cols, aligned);
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        float value = static_cast<float>(stored.values[i]);
        sums.finite = sums.finite && value - value == 0.0f;
        if constexpr (kForm == Form::centred) value -= first + i < cols ? centre[first + i] : 0.0f;
        if constexpr (kForm == Form::unit) value = static_cast<float>(static_cast<double>(value) * inverse_norm);
        value *= scale;
        const __half rounded = __float2half_rn(value);
        const float back = __half2float(rounded);
        sums.inside = sums.inside && fabsf(value) < 65504.0f;  // false for NaN
        sums.squares += back * back;
        const float residual = value - back;
        sums.residual_squares += residual * residual;
        halves[i] = kNegated ? __hneg(rounded) : rounded;
      }
    }
    store_vector(operands + operand_offset(row, first * 2, chunks), load_vector<Four<__half>>(halves));
  }
  sums.squares = warp_sum(sums.squares);
  sums.residual_squares = warp_sum(sums.residual_squares);
  sums.finite = __all_sync(kWholeWarp, sums.finite);
  sums.inside = __all_sync(kWholeWarp, sums.inside);
  return sums;
}

// Upper bounds. The residual is that of the rounding and, 2^-24 of each value twice over, of centring or scaling.
__device__ OperandFacts facts_of(const HalfSums& sums, int64_t cols) {
  const float slack = 1.0001f + static_cast<float>(cols) * 1e-7f;
  const float norm = sqrtf(sums.squares) * slack;
  return {norm, sqrtf(sums.residual_squares) * slack + norm * 2.4e-7f + 1e-30f};
}

template <Form kForm, typename T>
__global__ void __launch_bounds__(kOperandThreads)
    base_half_kernel(DeviceRowsView rows, int64_t cols, int64_t tile_rows, const float* centre, BaseFacts* facts,
                     std::byte* operands, BaseOperands target) {
  auto* const terms = static_cast<float*>(target.terms);
  const float scale = operand_scale(facts->sample_largest);
  const bool aligned = rows_aligned(static_cast<const T*>(rows.data), rows.stride);
  OperandFacts largest = {0, 0};
  bool unsure = false;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kOperandWarps;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kOperandWarps + threadIdx.x / 32; row < tile_rows;
       row += step) {
    const HalfSums sums = convert_half<kForm, false, T>(rows, cols, row, centre, scale, aligned, operands);
    const OperandFacts mine = facts_of(sums, cols);
    largest = {fmaxf(largest.norm, mine.norm), fmaxf(largest.residual, mine.residual)};
    unsure = unsure || !sums.inside;
    if (threadIdx.x % 32 != 0) continue;
    float term = kForm == Form::plain ? 0.0f : 0.5f * sums.squares;
    // A zero vector is at distance 1 of every other: as far as one at a right angle.
    if (kForm == Form::unit && sums.squares == 0.0f) term = 0.5f * scale * scale;
    terms[row] = row < rows.count ? term : __int_as_float(0x7F800000);
    if (target.facts != nullptr) target.facts[row] = mine;
    if (!sums.finite && target.first_bad != nullptr) atomicMin(target.first_bad, static_cast<uint32_t>(row));
  }
  __shared__ OperandFacts warps[kOperandWarps];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = largest;
  const bool any_unsure = __syncthreads_or(unsure);
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kOperandWarps; ++i) {
    largest = {fmaxf(largest.norm, warps[i].norm), fmaxf(largest.residual, warps[i].residual)};
  }
  if (kForm == Form::unit) largest.norm = fmaxf(largest.norm, scale);
  raise(&facts->rows.norm, largest.norm);
  raise(&facts->rows.residual, largest.residual);
  if (any_unsure) atomicOr(&facts->unsure, 1u);
}

// The power of two for a query of its own, where no term must be in the same unit.
template <typename T>
__device__ float own_scale(const DeviceRowsView& rows, int64_t cols, int64_t row) {
  float largest = 0;
  const T* const values = rows.row<T>(row);
  for (int64_t col = threadIdx.x % 32; col < cols; col += 32) {
    largest = fmaxf(largest, fabsf(static_cast<float>(values[col])));
  }
  largest = warp_largest(largest);
  return largest <= 3e38f ? operand_scale(largest) : 1.0f;
}

template <Form kForm, typename T>
__global__ void __launch_bounds__(kOperandThreads)
    query_half_kernel(DeviceRowsView rows, int64_t cols, int64_t tile_rows, const float* centre, const BaseFacts* base,
                      std::byte* operands, QueryOperands target) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kOperandWarps + threadIdx.x / 32;
  if (row >= tile_rows) return;
  float scale = operand_scale(base->sample_largest);
  if (kForm == Form::plain && row < rows.count) scale = own_scale<T>(rows, cols, row);
  const bool aligned = rows_aligned(static_cast<const T*>(rows.data), rows.stride);
  const HalfSums sums = convert_half<kForm, true, T>(rows, cols, row, centre, scale, aligned, operands);
  if (threadIdx.x % 32 != 0 || row >= rows.count) return;
  // A zero query is at distance 1 of everything: no product tells.
  const bool unsure = !sums.inside || (kForm == Form::unit && sums.squares == 0.0f);
  target.facts[row] = {facts_of(sums, cols), scale, unsure ? 1u : 0u, static_cast<double>(sums.squares), 0.0};
  if (!sums.finite && target.first_bad != nullptr) {
    atomicMin(target.first_bad, target.first_query + static_cast<uint32_t>(row));
  }
}

template <typename Use>
void with_form(KeyKind kind, const Use& use) {
  switch (form_of(kind)) {
    case Form::plain: return use(std::integral_constant<Form, Form::plain>());
    case Form::centred: return use(std::integral_constant<Form, Form::centred>());
    case Form::unit: return use(std::integral_constant<Form, Form::unit>());
  }
}

}  // namespace

void launch_half_sample(const OperandTask& task, cudaStream_t stream) {
  const Grid grid = Grid::of(divide_up(task.cols, kSampleCols), kSampleCols * kSampleSlices);
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    launch(sample_kernel<T>, grid, stream, task.rows, task.cols, form_of(task.kind), task.centre, task.base_facts);
  });
}

void launch_half_base(const OperandTask& task, const BaseOperands& base, cudaStream_t stream) {
  const int64_t tile_rows = operand_tiles(task.rows.count) * kOperandTile;
  const int64_t blocks = std::min<int64_t>(divide_up(tile_rows, kOperandWarps), kOperandMostBlocks);
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    with_form(task.kind, [&](auto form) {
      launch(base_half_kernel<decltype(form)::value, T>, Grid::of(blocks, kOperandThreads), stream, task.rows,
             task.cols, tile_rows, task.centre, task.base_facts, task.operands, base);
    });
  });
}

void launch_half_queries(const OperandTask& task, const QueryOperands& queries, cudaStream_t stream) {
  const int64_t tile_rows = operand_tiles(task.rows.count) * kOperandTile;
  const int64_t blocks = divide_up(tile_rows, kOperandWarps);
  visit_dtype(task.rows.dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    with_form(task.kind, [&](auto form) {
      launch(query_half_kernel<decltype(form)::value, T>, Grid::of(blocks, kOperandThreads), stream, task.rows,
             task.cols, tile_rows, task.centre, task.base_facts, task.operands, queries);
    });
  });
}

}  // namespace kith
