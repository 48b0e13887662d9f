// A warp for each vector, four columns a lane at a time.
#include "ivf/scan/prepare_lists_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/lookup_tables_cuda.hpp"
#include "kernels/codes/code_reader_cuda.hpp"

#include <algorithm>

namespace kith {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kWarpVectors = 32;  // one after the other

__device__ double warp_sum(double value) {
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, apart);
  return value;
}

// Of floats that are not negative; NaN counts as infinite.
__device__ void raise(float* to, float value) {
  if (!(value < HUGE_VALF)) value = HUGE_VALF;
  atomicMax(vectors<int>(to), __float_as_int(value));
}

__device__ int64_t list_of(const DeviceListsView& lists, int64_t position) {
  int64_t low = 0;
  int64_t high = lists.lists;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (lists.offsets[middle] <= position) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

__device__ float4 origin_four(const float* centre, int first, int cols) {
  float4 four = {0, 0, 0, 0};
  if (centre == nullptr) return four;
  if (first < cols) four.x = centre[first];
  if (first + 1 < cols) four.y = centre[first + 1];
  if (first + 2 < cols) four.z = centre[first + 2];
  if (first + 3 < cols) four.w = centre[first + 3];
  return four;
}

// Calls use(position, list) for the warp's vectors.
template <typename Use>
__device__ void for_vectors(const DeviceListsView& lists, const Use& use) {
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int64_t first = warp * kWarpVectors;
  if (first >= lists.count) return;
  const int64_t end = first + kWarpVectors < lists.count ? first + kWarpVectors : lists.count;
  int64_t list = list_of(lists, first);
  for (int64_t position = first; position < end; ++position) {
    while (lists.offsets[list + 1] <= position) ++list;
    use(position, list);
  }
}

__global__ void __launch_bounds__(kThreads) largest_kernel(DeviceListsView lists, int64_t code_bytes, float* largest) {
  const int cols = static_cast<int>(lists.codec.format.cols);
  const bool subtracts = lists.subtracts();
  float mine = 0;
  const auto look = [&](float value) {
    if (fabsf(value) < HUGE_VALF) mine = fmaxf(mine, fabsf(value));
  };
  if (lists.codec.format.copies_codewords()) {
    const int64_t values = lists.codec.format.codewords() * cols;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < values; i += gridDim.x * kThreads) {
      look(lists.codec.codewords[i]);
    }
  } else {
    for_vectors(lists, [&](int64_t position, int64_t list) {
      const float* const centre = subtracts ? lists.centres + list * cols : nullptr;
      for (int first = threadIdx.x % 32 * 4; first < cols; first += 128) {
        const FourFloats four = decode_four(lists.codec, lists.codes + position * code_bytes, first);
        const float4 origin = origin_four(centre, first, cols);
        look(four.values[0] - origin.x);
        look(four.values[1] - origin.y);
        look(four.values[2] - origin.z);
        look(four.values[3] - origin.w);
      }
    });
  }
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) mine = fmaxf(mine, __shfl_xor_sync(0xFFFFFFFFu, mine, apart));
  if (threadIdx.x % 32 == 0 && mine > 0) raise(largest, mine);
}

// A thread for each half: of code `number`, step, quarter and column of its unit, in this order from the slowest.
__global__ void __launch_bounds__(kThreads)
    table_kernel(const __grid_constant__ DeviceListsView lists, int64_t count, const float* largest, uint16_t* table) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const CodeFormat& format = lists.codec.format;
  const auto step = static_cast<int>(i / (kTableStepBytes / 2));
  const auto within = static_cast<int>(i % (kTableStepBytes / 2));
  const int number = within / 16;
  const int col = 4 * unit_of(unit_order(format), step, within % 16 / 4) + within % 4;
  float word = 0;
  if (col < format.cols) {
    const auto each = static_cast<int>(format.part_cols());
    word = lists.codec.codewords[(static_cast<int64_t>(col / each) * 256 + number) * each + col % each];
  }
  table[i] = __half_as_ushort(__float2half_rn(word * operand_scale(*largest)));
}

__global__ void __launch_bounds__(kThreads)
    facts_kernel(DeviceListsView lists, int64_t code_bytes, PreparedLists prepared) {
  const int cols = static_cast<int>(lists.codec.format.cols);
  const auto half_cols = static_cast<int>(PreparedLists::half_cols(cols));
  const float scale = operand_scale(*prepared.largest);
  const bool by_norm = lists.key().by_norm;
  const bool subtracts = lists.subtracts();
  const bool has_origin = lists.has_origin();
  for_vectors(lists, [&](int64_t position, int64_t list) {
    const float* const centre = lists.centres == nullptr ? nullptr : lists.centres + list * cols;
    double square = 0;
    double residual = 0;
    double stored_square = 0;
    double moved_square = 0;
    for (int first = threadIdx.x % 32 * 4; first < half_cols; first += 128) {
      const FourFloats four = decode_four(lists.codec, lists.codes + position * code_bytes, first);
      const float4 origin = origin_four(has_origin ? centre : nullptr, first, cols);
      const float4 scaled = {subtracts ? origin.x * scale : 0, subtracts ? origin.y * scale : 0,
                             subtracts ? origin.z * scale : 0, subtracts ? origin.w * scale : 0};
      const uint2 rounded = halves_of(four, scale, scaled);
      if (prepared.halves != nullptr) {
        store_vector(prepared.halves + position * half_cols + first, rounded);
      }
      const FourFloats halves = floats_of(rounded);
      const float origins[4] = {origin.x, origin.y, origin.z, origin.w};
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (first + i >= cols) break;
        const float stored = lists.residual ? __fadd_rn(origins[i], four.values[i]) : four.values[i];
        const double centred = static_cast<double>(stored) - origins[i];
        const double moved = centred * scale - halves.values[i];
        moved_square += centred * centred;
        square += static_cast<double>(halves.values[i]) * halves.values[i];
        residual += moved * moved;
        stored_square += static_cast<double>(stored) * stored;
      }
    }
    square = warp_sum(square);
    residual = warp_sum(residual);
    stored_square = warp_sum(stored_square);
    moved_square = warp_sum(moved_square);
    if (threadIdx.x % 32 != 0) return;
    raise(&prepared.facts[list].norm, static_cast<float>(sqrt(square) * (1 + 0x1p-20)));
    raise(&prepared.facts[list].residual, static_cast<float>(sqrt(residual) * (1 + 0x1p-20)));
    if (lists.kind == KeyKind::cosine) {
      // Where the norm is out of f32's range the factor is not to be trusted.
      const double norm = sqrt(stored_square) * scale;
      const double factor = norm == 0 ? 0.0 : norm > 1e-30 && norm < 1e30 ? 1 / norm : HUGE_VAL;
      prepared.terms[position] = static_cast<float>(factor);
      raise(&prepared.facts[list].factor, static_cast<float>(factor));
    } else if (by_norm) {
      const double norm = code_norm(lists.codec, lists.codes + position * code_bytes);
      const auto term = static_cast<float>((moved_square + (norm - stored_square)) * scale * scale / 2);
      prepared.terms[position] = term;
      // And what float64 loses of norms that are far larger than what is left of them.
      const double largest = 2 * fabs(static_cast<double>(term)) + stored_square * scale * scale * 0x1p-23;
      raise(&prepared.facts[list].factor, static_cast<float>(largest * (1 + 0x1p-20)));
    } else if (prepared.terms != nullptr) {
      prepared.terms[position] = static_cast<float>(square / 2);
    }
  });
}

// The mean of so many centres, which is amid them well enough. A thread for each column.
__global__ void __launch_bounds__(kLookupThreads)
    middle_kernel(const __grid_constant__ DeviceListsView lists, const float* largest, float* middle) {
  constexpr int64_t kMostCentres = 1024;
  const auto cols = static_cast<int>(lists.codec.format.cols);
  const auto col = static_cast<int>(threadIdx.x);
  if (col >= cols) return;
  const int64_t count = lists.lists < kMostCentres ? lists.lists : kMostCentres;
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; lists.has_origin() && i < count; ++i) {
    const float value = lists.centres[i * lists.lists / count * cols + col];
    if (!(fabsf(value) < 1e30f)) continue;
    sum += value;
    ++finite;
  }
  middle[col] = finite == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(finite) * operand_scale(*largest));
}

// Entries |w|^2 + 2 <c, w>, c less the middle.
__global__ void __launch_bounds__(kLookupThreads)
    list_terms_kernel(const __grid_constant__ DeviceListsView lists, const __grid_constant__ PreparedLists prepared,
                      const __grid_constant__ ScanTerms terms) {
  extern __shared__ __align__(16) float tables[];
  __shared__ float centre[kLookupCols];
  const CodeFormat& format = lists.codec.format;
  const auto cols = static_cast<int>(format.cols);
  const auto thread = static_cast<int>(threadIdx.x);
  const float scale = operand_scale(*prepared.largest);
  for (int64_t list = blockIdx.x; list < lists.lists; list += gridDim.x) {
    const int64_t begin = lists.offsets[list];
    const int64_t end = lists.offsets[list + 1];
    if (begin == end && terms.tables == nullptr) continue;
    __syncthreads();  // the list before is done
    if (thread < cols) {
      const float own = lists.has_origin() ? lists.centres[list * cols + thread] : 0.0f;
      centre[thread] = fmaf(own, scale, -terms.middle[thread]);
    }
    __syncthreads();
    float* const out = terms.tables == nullptr ? tables : terms.tables + list * format.parts * 256;
    fill_lookup_tables(format, prepared.table, centre, out,
                       [](float sum, float c, float word) { return fmaf(word, fmaf(2.0f, c, word), sum); });
    if (terms.vectors == nullptr) continue;
    __syncthreads();
    for (int64_t position = begin + thread; position < end; position += kLookupThreads) {
      terms.vectors[position] = look_up(tables, lists.codes + position * format.parts, format.parts);
    }
  }
}

}  // namespace

void launch_prepare_lists(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream) {
  const CodeFormat& format = lists.codec.format;
  KITH_CUDA_CHECK(cudaMemsetAsync(prepared.largest, 0, sizeof(float), stream));
  KITH_CUDA_CHECK(cudaMemsetAsync(prepared.facts, 0, static_cast<size_t>(lists.lists) * sizeof(ListFacts), stream));
  const int64_t values = format.copies_codewords() ? format.codewords() * format.cols : 0;
  const int64_t blocks = divide_up(lists.count, kWarps * kWarpVectors);
  constexpr int64_t kMostBlocks = 1024;
  const int64_t looking =
      format.copies_codewords() ? std::min(divide_up(values, int64_t{kThreads}), kMostBlocks) : blocks;
  launch(largest_kernel, Grid::of(looking, kThreads), stream, lists, format.bytes(), prepared.largest);
  if (prepared.table != nullptr) {
    const int64_t halves = table_steps(format) * kTableStepBytes / 2;
    launch(table_kernel, Grid::over(halves, kThreads), stream, lists, halves, prepared.largest, prepared.table);
  }
  launch(facts_kernel, Grid::of(blocks, kThreads), stream, lists, format.bytes(), prepared);
}

void launch_scan_terms(const DeviceListsView& lists, const PreparedLists& prepared, const ScanTerms& terms,
                       cudaStream_t stream) {
  if (terms.term == ScanTerm::none) return;
  launch(middle_kernel, Grid::of(1, kLookupThreads), stream, lists, prepared.largest, terms.middle);
  constexpr int64_t kMostBlocks = 1 << 16;
  const int64_t shared = terms.tables == nullptr ? lists.codec.format.parts * 256 * 4 : 0;
  allow_all_shared_memory(list_terms_kernel);
  launch(list_terms_kernel, Grid::of(std::min(lists.lists, kMostBlocks), kLookupThreads).with_shared(shared), stream,
         lists, prepared, terms);
}

}  // namespace kith
