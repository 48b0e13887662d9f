#include "graph/build/cells/cell_operands_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "graph/build/cells/cell_ranks_cuda.hpp"
#include "graph/build/cells/cell_workspace_cuda.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/select/device_group_cuda.hpp"
#include "kernels/select/key_cut.hpp"

#include <cuda_fp16.h>

#include <cmath>

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

// A limit that lets every row pass, and no padding.
__device__ float all_pass(float) { return 1e38f; }
__device__ int32_t all_pass(int32_t) { return 0x30000000; }
__device__ float none_passes(float) { return __int_as_float(0xFF800000); }
__device__ int32_t none_passes(int32_t) { return -0x7FFFFFFF - 1; }
__device__ float no_term(float) { return __uint_as_float(kNoHalfTerm); }
__device__ int32_t no_term(int32_t) { return kNoByteTerm; }
__device__ float stored_limit(double limit, float) {
  return limit < 1e38 ? static_cast<float>(limit + fabs(limit) * 0x1p-22) : 1e38f;
}
__device__ int32_t stored_limit(double limit, int32_t) {
  return limit < 0x30000000 ? static_cast<int32_t>(ceil(limit)) + 2 : 0x30000000;
}
__device__ float difference(float a, float b) { return a - b; }
__device__ int32_t difference(int32_t a, int32_t b) {  // both small, or one of them all_pass()
  const int64_t value = static_cast<int64_t>(a) - b;
  return value > 0x30000000 ? 0x30000000 : static_cast<int32_t>(value);
}

// The window of the row at a place as a query, whichever side of a pair it is on: its own bounds, the largest of all.
struct PlaceWindow {
  WindowProblem problem;
  QueryWindow query;
  OperandBounds rows;
  double own;  // the row's own part
  bool sure;

  template <typename Acc>
  __device__ PlaceWindow(const CellOperands& cells, int64_t place, Acc) {
    const BaseBounds bounds = *cells.bounds;
    const bool bytes = cells.type == OperandType::bytes;
    const double scale = bytes ? 1.0 : operand_scale(bounds.sample_largest);
    problem = {cells.kind, bytes, cells.cols, cells.kind == KeyKind::inner_product ? scale * scale : scale};
    rows = bounds.rows;
    own = static_cast<double>(static_cast<const Acc*>(cells.own)[place]);
    const float norm = cells.norms[place];
    // Halves: 2^-11 of each value, or half of the smallest step, and what centring or scaling lost.
    const float rounding = norm * (0x1p-11f + 2.4e-7f) * 1.001f + 0x1p-24f * sqrtf(static_cast<float>(cells.cols));
    const bool product = cells.kind == KeyKind::inner_product;
    query = {
        {norm, bytes ? 0.0f : fminf(rounding, bounds.rows.residual)}, product ? 0.0 : 2 * own, product ? own : 0.0};
    sure = bounds.unsure == 0;
  }

  // A window's threshold as the largest value with the own part, and what the two additions of it lose.
  template <typename Acc>
  __device__ Acc limit(const CandidateWindow& window, Acc) const {
    if (!sure || !window.sure) return all_pass(Acc{});
    const double largest = static_cast<double>(rows.norm) * rows.norm;
    const double value = static_cast<double>(window.threshold) + own;
    return stored_limit(value + 0x1p-21 * (fabs(value) + fabs(own) + largest), Acc{});
  }
};

template <typename Acc>
__global__ void __launch_bounds__(kThreads)
    limits_kernel(CellOperands cells, DeviceWorkingLists lists, bool from_lists, bool both_sides) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (place >= cells.places) return;
  const uint32_t row = cells.place_rows[place];
  const Acc term = static_cast<const Acc*>(cells.terms)[place];
  Acc limit = none_passes(Acc{});
  Acc second = no_term(Acc{});
  if (row < lists.rows) {  // others have no list, or are none
    limit = all_pass(Acc{});
    const uint64_t last = from_lists ? lists.entries[(static_cast<int64_t>(row) + 1) * lists.length - 1] : kPadding;
    const uint32_t key = ordered_of(last);
    if (last != kPadding && key != kNanKey) {
      const PlaceWindow window(cells, place, Acc{});
      limit = window.limit(range_window(window.problem, window.query, window.rows, key_of_ordered(key)), Acc{});
    }
    if (both_sides) second = difference(term, limit);
  }
  static_cast<Acc*>(cells.limits)[place] = limit;
  Acc* const tile = static_cast<Acc*>(cells.pair_terms) + place / kOperandTile * (2 * kOperandTile);
  tile[place % kOperandTile] = term;
  tile[kOperandTile + place % kOperandTile] = second;
}

// All equal values pass, so that no row number is looked at.
struct AllRows {
  __device__ int count(uint32_t, uint32_t) const { return 0; }
};

// A warp for each slot.
template <typename Acc, int kHeld>
__global__ void __launch_bounds__(kThreads) parts_kernel(CellOperands cells, const uint32_t* slots, int64_t count,
                                                         const float* parts, int64_t stride, int k) {
  const int64_t slot = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (slot >= count || slots[slot] == kNoPlace) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* const values = parts + slot * stride;
  uint32_t keys[kHeld];
  KITH_UNROLL
  for (int i = 0; i < kHeld; ++i) {
    keys[i] = i * 32 + lane < stride ? ordered_key(values[i * 32 + lane]) : kNanKey;
  }
  WarpGroup group;
  const uint32_t key = find_cut(group, keys, AllRows(), 0, {k, k}).key;
  if (lane != 0) return;
  const int64_t place = slots[slot];
  const double kth = key == kNanKey ? HUGE_VAL : key_of_ordered(key);
  Acc limit = all_pass(Acc{});
  if (kth < 1e38) {  // else it is no row's
    const PlaceWindow window(cells, place, Acc{});
    limit = window.limit(candidate_window(window.problem, window.query, window.rows, kth), Acc{});
  }
  Acc* const known = static_cast<Acc*>(cells.limits) + place;  // by a list that a first try has filled
  *known = min(*known, limit);
}

template <typename Acc>
__global__ void __launch_bounds__(kThreads)
    slot_limits_kernel(CellOperands cells, const uint32_t* slots, int64_t count, Acc* out) {
  const int64_t slot = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (slot >= count) return;
  const uint32_t place = slots[slot];
  Acc mine = none_passes(Acc{});
  Acc rows = none_passes(Acc{});
  if (place != kNoPlace) {
    const Acc own = static_cast<const Acc*>(cells.own)[place];
    const Acc limit = static_cast<const Acc*>(cells.limits)[place];
    if (limit != mine) mine = difference(limit, own);  // else it has no list
    rows = -own;
  }
  out[2 * slot] = mine;
  out[2 * slot + 1] = rows;
}

template <typename Use>
void with_values(const CellOperands& cells, const Use& use) {
  if (cells.type == OperandType::bytes) return use(int32_t{});
  use(float{});
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

void launch_cell_limits(const CellOperands& cells, const DeviceWorkingLists& lists, const CellLimits& from,
                        cudaStream_t stream) {
  with_values(cells, [&](auto value) {
    launch(limits_kernel<decltype(value)>, Grid::over(cells.places, kThreads), stream, cells, lists, from.lists,
           from.both_sides);
  });
}

void launch_limits_of_parts(const CellOperands& cells, const uint32_t* slots, int64_t count, const float* parts,
                            int64_t stride, int64_t k, cudaStream_t stream) {
  if (k > stride) return;  // the limits stay as they are: all pass
  const Grid grid = Grid::of(divide_up(count, kWarps), kThreads);
  with_values(cells, [&](auto value) {
    using Acc = decltype(value);
    if (stride <= 128) {
      launch(parts_kernel<Acc, 4>, grid, stream, cells, slots, count, parts, stride, static_cast<int>(k));
    } else {
      static_assert(kMostCellParts == 32 * 32);
      launch(parts_kernel<Acc, 32>, grid, stream, cells, slots, count, parts, stride, static_cast<int>(k));
    }
  });
}

void launch_slot_limits(const CellOperands& cells, const uint32_t* slots, int64_t count, void* out,
                        cudaStream_t stream) {
  with_values(cells, [&](auto value) {
    using Acc = decltype(value);
    launch(slot_limits_kernel<Acc>, Grid::over(count, kThreads), stream, cells, slots, count, static_cast<Acc*>(out));
  });
}

}  // namespace kith
