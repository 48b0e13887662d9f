#include "kernels/matrix/operands_cuda.hpp"

#include "core/dtype_visit.hpp"
#include "core/memory_budget.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/matrix/round_half_cuda.hpp"

#include <algorithm>
#include <type_traits>

namespace kith {
namespace {

constexpr int kOperandWarps = 8;
constexpr int kOperandThreads = 32 * kOperandWarps;
constexpr int64_t kOperandMostBlocks = 132 * 16;  // each takes rows until none are left

// Halves: a warp for each row, four values a lane at a time.

constexpr int64_t kSamples = 256;
constexpr int kSampleCols = 32;
constexpr int kSampleSlices = 8;

template <typename T>
__global__ void __launch_bounds__(kSampleCols* kSampleSlices)
    sample_kernel(DeviceRowsView rows, int64_t cols, Form form, float* centre, BaseBounds* bounds) {
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
  if (threadIdx.x % 32 == 0) raise(&bounds->sample_largest, largest);
}

// The squared distance of a row to the centre, by a warp.
template <typename T>
__device__ double squared_distance(const T* row, const float* centre, int64_t cols) {
  double sum = 0;
  for (int64_t col = threadIdx.x % 32; col < cols; col += 32) {
    const double apart = static_cast<double>(static_cast<float>(row[col])) - centre[col];
    sum += apart * apart;
  }
  return warp_sum(sum);
}

// A warp for each sample.
template <typename T>
__global__ void __launch_bounds__(kOperandThreads)
    sample_norms_kernel(DeviceRowsView rows, int64_t cols, const float* centre, float* norms) {
  const int64_t samples = rows.count < kSamples ? rows.count : kSamples;
  const int64_t sample = static_cast<int64_t>(blockIdx.x) * kOperandWarps + threadIdx.x / 32;
  if (sample >= samples) return;
  const double squares = squared_distance(rows.row<T>(sample * rows.count / samples), centre, cols);
  if (threadIdx.x % 32 == 0) norms[sample] = static_cast<float>(sqrt(squares));
}

// One block, a thread for each sample. Samples much farther from the centre than half of them are left out; if there are
// any, the centre and the largest magnitude are found anew.
template <typename T>
__global__ void __launch_bounds__(kSamples)
    trim_sample_kernel(DeviceRowsView rows, int64_t cols, float* centre, BaseBounds* bounds, const float* norms) {
  constexpr float kFarSample = 8;
  __shared__ float all[kSamples];
  __shared__ bool kept[kSamples];
  __shared__ float median;
  __shared__ float ordinary;
  const int thread = static_cast<int>(threadIdx.x);
  const int samples = static_cast<int>(rows.count < kSamples ? rows.count : kSamples);
  all[thread] = thread < samples ? norms[thread] : 0.0f;
  if (thread == 0) ordinary = 0;
  __syncthreads();
  if (thread < samples) {
    int before = 0;
    for (int i = 0; i < samples; ++i) before += all[i] < all[thread] || (all[i] == all[thread] && i < thread) ? 1 : 0;
    if (before == samples / 2) median = all[thread];
  }
  __syncthreads();
  kept[thread] = thread < samples && all[thread] <= kFarSample * median;  // false for NaN
  const bool all_kept = __syncthreads_and(thread >= samples || kept[thread]);
  if (!all_kept) {
    float largest = 0;
    for (int64_t col = thread; col < cols; col += kSamples) {
      const auto value = [&](int s) { return static_cast<float>(rows.row<T>(s * rows.count / samples)[col]); };
      double sum = 0;
      int count = 0;
#pragma unroll 16  // so that many reads are under way
      for (int s = 0; s < samples; ++s) {
        sum += kept[s] ? value(s) : 0.0f;
        count += kept[s] ? 1 : 0;
      }
      const float mean = count > 0 ? static_cast<float>(sum / count) : 0.0f;
      centre[col] = mean - mean == 0.0f ? mean : 0.0f;
      const float middle = centre[col];
#pragma unroll 16
      for (int s = 0; s < samples; ++s) largest = fmaxf(largest, kept[s] ? fabsf(value(s) - middle) : 0.0f);
    }
    __shared__ float warps[kSamples / 32];
    largest = warp_largest(largest);
    if (thread % 32 == 0) warps[thread / 32] = largest;
    __syncthreads();
    if (thread == 0) {
      for (int i = 1; i < kSamples / 32; ++i) largest = fmaxf(largest, warps[i]);
      bounds->sample_largest = largest;
    }
    for (int s = thread / 32; s < samples; s += kSamples / 32) {
      if (!kept[s]) continue;
      const double squares = squared_distance(rows.row<T>(s * rows.count / samples), centre, cols);
      if (thread % 32 == 0) all[s] = static_cast<float>(sqrt(squares));
    }
    __syncthreads();
  }
  if (thread < samples && kept[thread]) raise(&ordinary, all[thread]);
  __syncthreads();
  // Not finite where the scale is none: then no row is far.
  const float scaled = ordinary * operand_scale(bounds->sample_largest);
  if (thread == 0) bounds->ordinary = scaled <= 3e38f ? scaled : 0.0f;
}

// Loads of a row that are under way at a time; of narrow rows the next one's first.
constexpr int kNarrowAhead = 1;
constexpr int kWideAhead = 4;
constexpr int64_t kWideFromCols = 257;

// Four values as floats. What becomes of a NaN's digits does not matter here.
template <typename T>
__device__ float4 floats_of(const Four<T>& four) {
  const auto value = [&](int i) { return static_cast<float>(four.values[i]); };
  return {value(0), value(1), value(2), value(3)};
}
__device__ float4 floats_of(const Four<Half>& four) {
  const auto value = [&](int i) { return __half2float(__ushort_as_half(four.values[i].bits)); };
  return {value(0), value(1), value(2), value(3)};
}

// The centre's values of four neighbouring columns.
__device__ float4 centre_at(const float* centre, int64_t first, int64_t cols, bool whole) {
  if (whole) return first < cols ? load_vector<float4>(centre + first) : float4{0, 0, 0, 0};
  const auto value = [&](int64_t col) { return col < cols ? centre[col] : 0.0f; };
  return {value(first), value(first + 1), value(first + 2), value(first + 3)};
}

// A lane's first values of a row, where there is one.
template <typename T>
__device__ Four<T> first_four(const DeviceRowsView& rows, int64_t cols, int64_t row, bool aligned) {
  const int64_t first = 4 * (threadIdx.x % 32);
  if (row >= rows.count || first >= cols) return {};
  return load_four(rows.row<T>(row), first, cols, aligned);
}

// Reads a row, of which a lane's first values are given, and writes its operand.
template <Form kForm, bool kNegated, int kAhead, typename T>
__device__ HalfSums convert_half(const DeviceRowsView& rows, int64_t cols, int64_t row, const Four<T>& given,
                                 const float* centre, float scale, bool aligned, std::byte* operands) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t chunks = operand_chunks(cols, 2);
  HalfSums sums;
  const bool real = row < rows.count;
  const T* const from = real ? rows.row<T>(row) : nullptr;
  double inverse_norm = 1;
  if constexpr (kForm == Form::unit) inverse_norm = real ? rows.inverse_norms[row] : 0.0;
  const bool whole = aligned && cols % 4 == 0 && is_aligned(centre, 16);
  const int64_t end = chunks * (kChunkBytes / 2);
  std::byte* const to = operands + operand_offset(row, 8 * lane, chunks);
  const auto convert = [&](int64_t first, const Four<T>& stored) {
    float4 middle = {0, 0, 0, 0};
    if constexpr (kForm == Form::centred) middle = centre_at(centre, first, cols, whole);
    const float4 values = floats_of(stored);
    const auto value = [&](float x, float of) { return formed<kForm>(x, of, inverse_norm, scale); };
    constexpr uint32_t kSigns = kNegated ? 0x80008000u : 0u;
    uint2 halves = {0, 0};
    if (real) {
      halves.x = round_halves<kNegated>(value(values.x, middle.x), value(values.y, middle.y), sums) ^ kSigns;
      halves.y = round_halves<kNegated>(value(values.z, middle.z), value(values.w, middle.w), sums) ^ kSigns;
    }
    // 128 columns further on are two chunks: their places differ by these alone.
    store_vector(to + first / 128 * (2 * kTileChunkBytes), halves);
  };
  for (int64_t start = 4 * lane; start < end; start += 128 * kAhead) {
    Four<T> stored[kAhead] = {};
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      const int64_t first = start + 128 * ahead;
      if (ahead == 0 && start < 128) {
        stored[0] = given;
      } else if (real && first < cols) {
        stored[ahead] = whole ? load_vector<Four<T>>(from + first) : load_four(from, first, cols, aligned);
      }
    }
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      if (start + 128 * ahead < end) convert(start + 128 * ahead, stored[ahead]);
    }
  }
  sums.squares = warp_sum(sums.squares);
  if constexpr (kNegated) sums.true_squares = warp_sum(sums.true_squares);
  sums.residual_squares = warp_sum(sums.residual_squares);
  return sums;
}

// Whether all values of a row whose halves are not are finite themselves, by a warp.
template <typename T>
__device__ bool is_finite(const DeviceRowsView& rows, int64_t cols, int64_t row) {
  const T* const values = rows.row<T>(row);
  bool finite = true;
  for (int64_t col = threadIdx.x % 32; col < cols; col += 32) {
    const auto value = static_cast<float>(values[col]);
    finite = finite && value - value == 0.0f;
  }
  return __all_sync(kAllLanes, finite);
}

// Whether a row of which the product would have this term is far. Terms lose less than a hundredth.
__device__ bool is_far(float term, float ordinary) {
  const float least = 1.01f * kFarRow * ordinary;
  return ordinary > 0 && !(term <= 0.5f * least * least);
}

// After base_half_kernel: the operands of far rows become zeros, and their terms what far_term() says.
template <typename T>
__global__ void __launch_bounds__(kOperandThreads)
    far_rows_kernel(DeviceRowsView rows, int64_t cols, const float* centre, const BaseBounds* bounds, std::byte* operands,
                    float* terms) {
  if (bounds->has_far == 0) return;
  const float ordinary = bounds->ordinary;
  const int64_t chunks = operand_chunks(cols, 2);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kOperandWarps + threadIdx.x / 32) * 32;
  const bool mine = first + lane < rows.count && is_far(terms[first + lane], ordinary);
  for (unsigned left = __ballot_sync(kAllLanes, mine); left != 0; left &= left - 1) {
    const int64_t row = first + __ffs(static_cast<int>(left)) - 1;
    const __half zeros[4] = {};
    for (int64_t col = 4 * lane; col < chunks * (kChunkBytes / 2); col += 128) {
      store_vector(operands + operand_offset(row, col * 2, chunks), load_vector<Four<__half>>(zeros));
    }
    const double norm = sqrt(squared_distance(rows.row<T>(row), centre, cols)) * operand_scale(bounds->sample_largest);
    if (lane == 0) terms[row] = far_term(norm, ordinary);
  }
}

template <Form kForm, int kAhead, typename T>
__global__ void __launch_bounds__(kOperandThreads, kAhead == kNarrowAhead ? 5 : 4)
    base_half_kernel(DeviceRowsView rows, int64_t cols, int64_t tile_rows, const float* centre, BaseBounds* bounds,
                     std::byte* operands, BaseOperands target) {
  auto* const terms = static_cast<float*>(target.terms);
  const float scale = operand_scale(bounds->sample_largest);
  const bool aligned = rows_aligned(static_cast<const T*>(rows.data), rows.stride);
  const float ordinary = bounds->ordinary;
  OperandBounds largest = {0, 0};
  bool unsure = false;
  bool any_far = false;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kOperandWarps;
  int64_t row = static_cast<int64_t>(blockIdx.x) * kOperandWarps + threadIdx.x / 32;
  Four<T> next = first_four<T>(rows, cols, row, aligned);
  for (; row < tile_rows; row += step) {
    const Four<T> given = next;
    next = first_four<T>(rows, cols, row + step, aligned);
    const HalfSums sums = convert_half<kForm, false, kAhead>(rows, cols, row, given, centre, scale, aligned, operands);
    const OperandBounds mine = bounds_of(sums, cols);
    const bool inside = sums.inside();
    const bool finite = inside || is_finite<T>(rows, cols, row);
    const bool far = kForm == Form::centred && finite && is_far(0.5f * sums.squares, ordinary);
    any_far = any_far || far;
    if (!far) largest = {fmaxf(largest.norm, mine.norm), fmaxf(largest.residual, mine.residual)};
    unsure = unsure || (!inside && !far);
    if (threadIdx.x % 32 != 0) continue;
    float term = kForm == Form::plain ? 0.0f : 0.5f * sums.squares;
    // A zero vector is at distance 1 of every other: as far as one at a right angle.
    if (kForm == Form::unit && sums.squares == 0.0f) term = 0.5f * scale * scale;
    terms[row] = row < rows.count ? term : __int_as_float(0x7F800000);
    if (target.bounds != nullptr) target.bounds[row] = mine;
    if (!finite && target.first_bad != nullptr) atomicMin(target.first_bad, static_cast<uint32_t>(row));
  }
  __shared__ OperandBounds warps[kOperandWarps];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = largest;
  const bool any_unsure = __syncthreads_or(unsure);
  const bool has_far = __syncthreads_or(any_far);
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kOperandWarps; ++i) {
    largest = {fmaxf(largest.norm, warps[i].norm), fmaxf(largest.residual, warps[i].residual)};
  }
  if (kForm == Form::unit) largest.norm = fmaxf(largest.norm, scale);
  raise(&bounds->rows.norm, largest.norm);
  raise(&bounds->rows.residual, largest.residual);
  if (any_unsure) atomicOr(&bounds->unsure, 1u);
  if (has_far) atomicOr(&bounds->has_far, 1u);
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

template <Form kForm, int kAhead, typename T>
__global__ void __launch_bounds__(kOperandThreads)
    query_half_kernel(DeviceRowsView rows, int64_t cols, int64_t tile_rows, const float* centre, const BaseBounds* base,
                      std::byte* operands, QueryOperands target) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kOperandWarps + threadIdx.x / 32;
  if (row >= tile_rows) return;
  float scale = operand_scale(base->sample_largest);
  if (kForm == Form::plain && row < rows.count) scale = own_scale<T>(rows, cols, row);
  const bool aligned = rows_aligned(static_cast<const T*>(rows.data), rows.stride);
  const HalfSums sums = convert_half<kForm, true, kAhead>(rows, cols, row, first_four<T>(rows, cols, row, aligned),
                                                          centre, scale, aligned, operands);
  const bool inside = sums.inside();
  const bool finite = inside || is_finite<T>(rows, cols, row);
  if (threadIdx.x % 32 != 0 || row >= rows.count) return;
  // A zero query is at distance 1 of everything: no product tells.
  const bool unsure = !inside || (kForm == Form::unit && sums.squares == 0.0f);
  const double true_square = sums.true_squares * (1 + 0x1p-21);  // past what centring has rounded
  target.bounds[row] = {bounds_of(sums, cols), scale, unsure ? 1u : 0u, static_cast<double>(sums.squares), 0.0,
                       true_square};
  if (!finite && target.first_bad != nullptr) {
    atomicMin(target.first_bad, target.first_query + static_cast<uint32_t>(row));
  }
}

// Bytes: eight lanes for each row, sixteen bytes a lane at a time.

struct ByteSums {
  int32_t squares = 0;
  int32_t values = 0;
};

constexpr int kByteLanes = 8;  // that share a row: 16 bytes each at a time
constexpr int kByteRows = kOperandThreads / kByteLanes;

// Unsigned bytes are shifted to signed ones by 128, which changes no difference. Four bytes.
template <typename T>
__device__ uint32_t signed_word(const T* row, int64_t first, int64_t cols) {
  uint32_t word = 0;
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (first + i >= cols) continue;
    const int value = static_cast<int>(row[first + i]) - (std::is_same_v<T, uint8_t> ? 128 : 0);
    word |= static_cast<uint32_t>(value & 0xFF) << (8 * i);
  }
  return word;
}

template <bool kInverted, typename T>
__device__ ByteSums convert_bytes(const DeviceRowsView& rows, int64_t cols, int64_t row, bool aligned,
                                  std::byte* operands) {
  constexpr uint32_t kShift = std::is_same_v<T, uint8_t> ? 0x80808080u : 0u;
  const int lane = static_cast<int>(threadIdx.x) % kByteLanes;
  const int64_t chunks = operand_chunks(cols, 1);
  ByteSums sums;
  const bool real = row < rows.count;
  const T* const from = real ? rows.row<T>(row) : nullptr;
  for (int64_t first = 16 * lane; first < chunks * kChunkBytes; first += kChunkBytes) {
    uint4 unit = {0, 0, 0, 0};
    if (real && aligned && first + 16 <= cols) {
      unit = load_vector<uint4>(from + first);
      unit = {unit.x ^ kShift, unit.y ^ kShift, unit.z ^ kShift, unit.w ^ kShift};
    } else if (real) {
      unit = {signed_word(from, first, cols), signed_word(from, first + 4, cols), signed_word(from, first + 8, cols),
              signed_word(from, first + 12, cols)};
    }
    for (const uint32_t word : {unit.x, unit.y, unit.z, unit.w}) {
      sums.squares = __dp4a(static_cast<int>(word), static_cast<int>(word), sums.squares);
      sums.values = __dp4a(static_cast<int>(word), 0x01010101, sums.values);
    }
    if (kInverted) unit = {~unit.x, ~unit.y, ~unit.z, ~unit.w};
    store_vector(operands + operand_offset(row, first, chunks), unit);
  }
  return {warp_sum<kByteLanes>(sums.squares), warp_sum<kByteLanes>(sums.values)};
}

__device__ bool units_aligned(const DeviceRowsView& rows) { return is_aligned(rows.data, 16) && rows.stride % 16 == 0; }

// The rows of the tiles are a multiple of kByteRows: no warp has lanes without one.
static_assert(kOperandTile % kByteRows == 0);

template <typename T>
__global__ void __launch_bounds__(kOperandThreads)
    base_bytes_kernel(DeviceRowsView rows, int64_t cols, int64_t tile_rows, bool product, BaseBounds* bounds,
                      std::byte* operands, int32_t* terms) {
  constexpr int kShift = std::is_same_v<T, uint8_t> ? 128 : 0;
  const bool aligned = units_aligned(rows);
  int32_t largest = 0;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kByteRows;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kByteRows + threadIdx.x / kByteLanes; row < tile_rows;
       row += step) {
    const ByteSums sums = convert_bytes<false, T>(rows, cols, row, aligned, operands);
    largest = max(largest, sums.squares);
    if (threadIdx.x % kByteLanes != 0) continue;
    // An inverted query q gives (-q - 1) x: the sum of x makes up for it. What the shift adds to a product is a
    // multiple of that sum and, for the query alone, key_offset.
    const int32_t term = product ? (1 - kShift) * sums.values : sums.squares / 2 + sums.values;
    terms[row] = row < rows.count ? term : kNoByteTerm;
  }
  __shared__ int32_t warps[kOperandWarps];
  largest = __reduce_max_sync(kAllLanes, largest);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = largest;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kOperandWarps; ++i) largest = max(largest, warps[i]);
  raise(&bounds->rows.norm, sqrtf(static_cast<float>(largest)) * 1.0001f);
}

template <typename T>
__global__ void __launch_bounds__(kOperandThreads)
    query_bytes_kernel(DeviceRowsView rows, int64_t cols, int64_t tile_rows, bool product, std::byte* operands,
                       QueryOperand* bounds) {
  constexpr int kShift = std::is_same_v<T, uint8_t> ? 128 : 0;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kByteRows + threadIdx.x / kByteLanes;
  if (row >= tile_rows) return;
  const ByteSums sums = convert_bytes<true, T>(rows, cols, row, units_aligned(rows), operands);
  if (threadIdx.x % kByteLanes != 0 || row >= rows.count) return;
  const double shifted =
      static_cast<double>(kShift) * sums.values + static_cast<double>(kShift) * kShift * static_cast<double>(cols);
  bounds[row] = {{sqrtf(static_cast<float>(sums.squares)) * 1.0001f, 0.0f},
                1.0f,
                0u,
                static_cast<double>(sums.squares),
                product ? -shifted : 0.0};
}

int64_t rows_of_tiles(const OperandTask& task) { return operand_tiles(task.rows.count) * kOperandTile; }

// Calls use(T(), form) with the form that the key wants.
template <typename Use>
void visit_halves(const OperandTask& task, const Use& use) {
  visit_dtype(task.rows.dtype, [&]<typename T>(StoredAs<T>) {
    switch (form_of(task.kind)) {
      case Form::plain: return use(T(), std::integral_constant<Form, Form::plain>());
      case Form::centred: return use(T(), std::integral_constant<Form, Form::centred>());
      case Form::unit: return use(T(), std::integral_constant<Form, Form::unit>());
    }
  });
}

template <typename Use>
void visit_bytes(const OperandTask& task, const Use& use) {
  if (task.rows.dtype == DType::u8) return use(uint8_t{});
  use(int8_t{});
}

}  // namespace

void launch_sample(const OperandTask& task, cudaStream_t stream) {
  if (is_counted_only(stream)) return;
  fill_bytes(task.base_bounds, 0, sizeof(BaseBounds), stream);
  if (task.type == OperandType::bytes) return;
  const Grid grid = Grid::of(divide_up(task.cols, kSampleCols), kSampleCols * kSampleSlices);
  visit_dtype(task.rows.dtype, [&]<typename T>(StoredAs<T>) {
    launch(sample_kernel<T>, grid, stream, task.rows, task.cols, form_of(task.kind), task.centre, task.base_bounds);
    if (!task.parts_far_rows || form_of(task.kind) != Form::centred) return;
    auto* const norms = vectors<float>(task.operands);
    launch(sample_norms_kernel<T>, Grid::of(kSamples / kOperandWarps, kOperandThreads), stream, task.rows, task.cols,
           task.centre, norms);
    launch(trim_sample_kernel<T>, Grid::of(1, kSamples), stream, task.rows, task.cols, task.centre, task.base_bounds,
           norms);
  });
}

void launch_base_operands(const OperandTask& task, const BaseOperands& base, cudaStream_t stream) {
  const int64_t rows = rows_of_tiles(task);
  const bool bytes = task.type == OperandType::bytes;
  const int64_t blocks = std::min(divide_up(rows, bytes ? kByteRows : kOperandWarps), kOperandMostBlocks);
  const Grid grid = Grid::of(blocks, kOperandThreads);
  if (bytes) {
    return visit_bytes(task, [&](auto value) {
      launch(base_bytes_kernel<decltype(value)>, grid, stream, task.rows, task.cols, rows,
             task.kind == KeyKind::inner_product, task.base_bounds, task.operands, static_cast<int32_t*>(base.terms));
    });
  }
  visit_halves(task, [&](auto value, auto form) {
    using T = decltype(value);
    constexpr Form kForm = decltype(form)::value;
    const auto kernel =
        task.cols < kWideFromCols ? base_half_kernel<kForm, kNarrowAhead, T> : base_half_kernel<kForm, kWideAhead, T>;
    launch(kernel, grid, stream, task.rows, task.cols, rows, task.centre, task.base_bounds, task.operands, base);
    if (!task.parts_far_rows || decltype(form)::value != Form::centred) return;
    launch(far_rows_kernel<decltype(value)>, Grid::of(divide_up(task.rows.count, 32 * kOperandWarps), kOperandThreads),
           stream, task.rows, task.cols, task.centre, task.base_bounds, task.operands,
           static_cast<float*>(base.terms));
  });
}

void launch_query_operands(const OperandTask& task, const QueryOperands& queries, cudaStream_t stream) {
  const int64_t rows = rows_of_tiles(task);
  const bool bytes = task.type == OperandType::bytes;
  const Grid grid = Grid::of(divide_up(rows, bytes ? kByteRows : kOperandWarps), kOperandThreads);
  if (bytes) {
    return visit_bytes(task, [&](auto value) {
      launch(query_bytes_kernel<decltype(value)>, grid, stream, task.rows, task.cols, rows,
             task.kind == KeyKind::inner_product, task.operands, queries.bounds);
    });
  }
  visit_halves(task, [&](auto value, auto form) {
    using T = decltype(value);
    constexpr Form kForm = decltype(form)::value;
    const auto kernel =
        task.cols < kWideFromCols ? query_half_kernel<kForm, kNarrowAhead, T> : query_half_kernel<kForm, kWideAhead, T>;
    launch(kernel, grid, stream, task.rows, task.cols, rows, task.centre, task.base_bounds, task.operands, queries);
  });
}

}  // namespace kith
