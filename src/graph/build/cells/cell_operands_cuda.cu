#include "graph/build/cells/cell_operands_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "graph/build/cells/cell_ranks_cuda.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/operands_cuda.hpp"

#include <cuda_fp16.h>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFFu;

// An upper bound of a length from a computed sum of squares.
__device__ float length_above(float squares, int64_t cols) {
  return sqrtf(squares) * (1.0001f + static_cast<float>(cols) * 1e-7f);
}

// A warp for each place: its operand's sum of squares.
__global__ void __launch_bounds__(kThreads) finish_halves_kernel(CellOperands cells) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (place >= cells.places) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float squares = 0;
  for (int64_t byte = 4 * lane; byte < cells.chunks * kChunkBytes; byte += kChunkBytes) {
    const auto pair = *reinterpret_cast<const __half2*>(cells.operands + operand_offset(place, byte, cells.chunks));
    const float2 values = __half22float2(pair);
    squares += values.x * values.x + values.y * values.y;
  }
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) squares += __shfl_xor_sync(kAll, squares, apart);
  if (lane != 0) return;
  auto* const terms = static_cast<float*>(cells.terms);
  auto* const own = static_cast<float*>(cells.own);
  if (cells.place_rows[place] == kNoPlace) terms[place] = __uint_as_float(kNoHalfTerm);
  own[place] = cells.kind == KeyKind::inner_product ? 0.0f : terms[place];
  cells.norms[place] = length_above(squares, cells.cols);
}

__global__ void __launch_bounds__(kThreads) finish_bytes_kernel(CellOperands cells) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (place >= cells.places) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int squares = 0;
  int values = 0;
  for (int64_t byte = 4 * lane; byte < cells.chunks * kChunkBytes; byte += kChunkBytes) {
    const int word = load_vector<int>(cells.operands + operand_offset(place, byte, cells.chunks));
    squares = __dp4a(word, word, squares);
    values = __dp4a(word, 0x01010101, values);
  }
  squares = __reduce_add_sync(kAll, squares);
  values = __reduce_add_sync(kAll, values);
  if (lane != 0) return;
  if (cells.place_rows[place] == kNoPlace) static_cast<int32_t*>(cells.terms)[place] = kNoByteTerm;
  const int shift = cells.dtype == DType::u8 ? 128 : 0;
  const int offset = -(shift * values + shift * shift * static_cast<int>(cells.cols));
  static_cast<int32_t*>(cells.own)[place] = cells.kind == KeyKind::inner_product ? offset : squares / 2;
  cells.norms[place] = sqrtf(static_cast<float>(squares)) * 1.0001f;
}

// A thread for 16 bytes of a slot.
__global__ void __launch_bounds__(kThreads)
    gather_queries_kernel(CellOperands cells, const uint32_t* slots, int64_t count, uint32_t flip, bool inverts,
                          std::byte* out) {
  const int64_t units = cells.chunks * (kChunkBytes / 16);
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= count * units) return;
  const int64_t slot = at / units;
  const int64_t byte = at % units * 16;
  const uint32_t place = slots[slot];
  uint4 unit = {0, 0, 0, 0};
  if (place != kNoPlace) {
    unit = load_vector<uint4>(cells.operands + operand_offset(place, byte, cells.chunks));
    if (inverts) {
      unit = {~unit.x, ~unit.y, ~unit.z, ~unit.w};
    } else {
      unit = {unit.x ^ flip, unit.y ^ flip, unit.z ^ flip, unit.w ^ flip};
    }
  }
  store_vector(out + operand_offset(slot, byte, cells.chunks), unit);
}

__global__ void __launch_bounds__(kThreads) list_kernel(const uint32_t* place_rows, int64_t places, uint32_t* list) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (place < places) list[place] = place_rows[place] == kNoPlace ? 0 : place_rows[place];
}

__global__ void __launch_bounds__(kThreads)
    norms_kernel(const double* norms, const uint32_t* list, int64_t count, double* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) out[i] = norms[list[i]];
}

}  // namespace

void launch_finish_operands(const CellOperands& cells, cudaStream_t stream) {
  launch(cells.type == OperandType::bytes ? finish_bytes_kernel : finish_halves_kernel,
         Grid::of(divide_up(cells.places, kWarps), kThreads), stream, cells);
}

void launch_gather_queries(const CellOperands& cells, const uint32_t* slots, int64_t count, std::byte* out,
                           cudaStream_t stream) {
  const int64_t threads = count * cells.chunks * (kChunkBytes / 16);
  const bool bytes = cells.type == OperandType::bytes;
  launch(gather_queries_kernel, Grid::over(threads, kThreads), stream, cells, slots, count, 0x80008000u, bytes, out);
}

void launch_operand_list(const uint32_t* place_rows, int64_t places, uint32_t* list, cudaStream_t stream) {
  launch(list_kernel, Grid::over(places, kThreads), stream, place_rows, places, list);
}

void launch_gather_norms(const double* norms, const uint32_t* list, int64_t count, double* out, cudaStream_t stream) {
  launch(norms_kernel, Grid::over(count, kThreads), stream, norms, list, count, out);
}

}  // namespace kith
