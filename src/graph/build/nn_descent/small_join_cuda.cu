// Small joins of NN-Descent on a GPU (join_slots.hpp): one or two warps for each.
//
// Operands go straight to registers: which column of a row is which of the product's does not matter while it is the
// same for both operands, so that four neighbouring threads read 64 bytes of a row at once. A warp keeps the products
// of its join in registers. Those of two warps are in shared memory (small_product_cuda.hpp),
// where a thread has a column and goes over the rows there are. Few wait for each other, and three to four times as
// many joins are under way as with 128 threads for each. Late rounds, and all of a merge where few are OLD, are small
// joins; they cost a chain of reads (samples, operands, what is known, rows of pairs left), no products.
#include "graph/build/nn_descent/join_cuda.hpp"

#include "cuda/launch.hpp"
#include "graph/build/nn_descent/join_keys_cuda.hpp"
#include "graph/build/nn_descent/small_product_cuda.hpp"

namespace kith {
namespace {

constexpr int kSmallLeftRoom = 256;
static_assert(kSmallLeftRoom <= kOffered);
constexpr int kMostPrefetched = 4;  // chunks of a row

constexpr int threads_of(JoinSize size) { return size == JoinSize::one_warp ? 32 : kSmallColumns; }
// Blocks that registers and shared memory allow.
constexpr int blocks_per_processor(JoinSize size) { return size == JoinSize::one_warp ? 20 : 12; }
constexpr int product_bytes(JoinSize size) {
  return size == JoinSize::one_warp ? 0 : small_rows(size) * kProductStride * 4;
}
constexpr JoinRoom small_room(JoinSize size) { return {small_samples(size), small_samples(size), kSmallLeftRoom}; }

template <int kThreads>
__device__ __forceinline__ void small_barrier() {
  if constexpr (kThreads == 32) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

// The products of a warp's join. Lane 4 g + t holds of column group j the rows g and g + 8, and the columns 8 j + 2 t
// and 8 j + 2 t + 1: value i lies in the first or second of these rows, i / 2, and of these columns, i % 2.
inline constexpr int kColumnGroups = kSmallColumns / 8;
using WarpProducts = float[kColumnGroups][4];

// What a lane has of the products: its rows, half 0 and 1, and its columns.
struct WarpJoin : SmallJoin {
  __device__ int row(int half) const { return 8 * half + lane_index() / 4; }
  __device__ int column(int j, int side) const { return 8 * j + lane_index() % 4 * 2 + side; }
  __device__ bool has_row(int half) const { return row(half) < shape.rows; }
  __device__ bool has_column(int j, int side) const { return column(j, side) < shape.columns; }
  __device__ int row_sample(int half) const { return shape.first_row + row(half); }
  __device__ int column_sample(int j, int side) const { return shape.first_column + column(j, side); }
};

__device__ __forceinline__ void multiply_in_warp(const WarpJoin& join, WarpProducts& products) {
  constexpr int kAtOnce = 4;  // column groups whose operands are on their way together
  const JoinOperands& operands = join.block.task.operands;
  KITH_UNROLL
  for (int j = 0; j < kColumnGroups; ++j) {
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) products[j][i] = 0;
  }
#pragma unroll 1
  for (int64_t chunk = 0; chunk < operands.chunks; ++chunk) {
    uint4 a[2][2];
    KITH_UNROLL
    for (int half = 0; half < 2; ++half) join.row_unit(join.row(half)).load(chunk * kTileChunkBytes, a[half]);
    KITH_UNROLL
    for (int first = 0; first < kColumnGroups; first += kAtOnce) {
      if (8 * first >= join.shape.columns) break;
      uint4 b[kAtOnce][2];
      KITH_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        join.column_unit(8 * (first + n) + lane_index() / 4).load(chunk * kTileChunkBytes, b[n]);
      }
      KITH_UNROLL
      for (int n = 0; n < kAtOnce; ++n) multiply_units(a, b[n], products[first + n]);
    }
  }
  if (join.across) return;
  // A sample is not compared with itself: its product becomes that of what is farthest.
  KITH_UNROLL
  for (int half = 0; half < 2; ++half) {
    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      if (join.row(half) == join.column(half, side)) products[half][2 * half + side] = -HUGE_VALF;
    }
  }
}

// The least values of the slots: of rows among the columns of each kind.
__device__ __forceinline__ void note_warp_rows(const WarpJoin& join, const WarpProducts& products) {
  float of_new[2];
  float of_old[2];
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) of_new[i] = of_old[i] = HUGE_VALF;
  KITH_UNROLL
  for (int j = 0; j < kColumnGroups; ++j) {
    if (8 * j >= join.shape.columns) break;
    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      const int sample = join.column_sample(j, side);
      const Weighed mine = weighed(join.block, sample, join.has_column(j, side));
      const bool old = join.is_old(sample);
      KITH_UNROLL
      for (int i = 0; i < 2; ++i) {
        const float value = mine.value(products[j][2 * i + side]);
        of_old[i] = fminf(of_old[i], old ? value : HUGE_VALF);
        of_new[i] = fminf(of_new[i], old ? HUGE_VALF : value);
      }
    }
  }
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) {
    KITH_UNROLL
    for (int apart = 1; apart < 4; apart *= 2) {
      of_old[i] = fminf(of_old[i], __shfl_xor_sync(kAllLanes, of_old[i], apart));
      of_new[i] = fminf(of_new[i], __shfl_xor_sync(kAllLanes, of_new[i], apart));
    }
    if (lane_index() % 4 != 0 || !join.has_row(i)) continue;
    uint32_t* const least = join.block.memory.least() + join.row_sample(i);
    least[join.block.slots.apart] = least_key(of_old[i]);
    if (!join.across) least[0] = least_key(of_new[i]);
  }
}

// A lane and the one `apart` from it have the same values: each gets the least of both for one half of them.
template <int kHalf>
__device__ __forceinline__ void halve(float (&values)[2 * kHalf], int apart, float (&mine)[kHalf]) {
  const bool upper = (lane_index() & apart) != 0;
  KITH_UNROLL
  for (int i = 0; i < kHalf; ++i) {
    const float kept = upper ? values[kHalf + i] : values[i];
    const float given = upper ? values[i] : values[kHalf + i];
    mine[i] = fminf(kept, __shfl_xor_sync(kAllLanes, given, apart));
  }
}

// Column minima over all rows. For NEW x NEW pairs the row minima already cover them.
__device__ __forceinline__ void note_warp_columns(const WarpJoin& join, const WarpProducts& products) {
  float values[2 * kColumnGroups];
  KITH_UNROLL
  for (int i = 0; i < 2 * kColumnGroups; ++i) values[i] = HUGE_VALF;
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) {
    const Weighed mine = weighed(join.block, join.row_sample(i), join.has_row(i));
    KITH_UNROLL
    for (int j = 0; j < kColumnGroups; ++j) {
      if (8 * j >= join.shape.columns) break;
      KITH_UNROLL
      for (int side = 0; side < 2; ++side) {
        values[2 * j + side] = fminf(values[2 * j + side], mine.value(products[j][2 * i + side]));
      }
    }
  }
  static_assert(kColumnGroups == 8);
  float eight[8];
  float four[4];
  float two[2];
  halve(values, 16, eight);
  halve(eight, 8, four);
  halve(four, 4, two);
  KITH_UNROLL
  for (int side = 0; side < 2; ++side) {  // of column group lane / 4
    const int column = 2 * lane_index() + side;
    const int sample = join.shape.first_column + column;
    if (column < join.shape.columns && join.is_old(sample)) {
      join.block.memory.least()[join.block.slots.old_slot(sample)] = least_key(two[side]);
    }
  }
}

// The pairs of `mask`, bit 4 j + i, for their rows or for their columns. NEW samples, who are rows and columns, meet
// where the row is the smaller.
__device__ inline void leave_masked(const WarpJoin& join, uint32_t mask, bool for_columns, int* count) {
  while (mask != 0) {
    const int bit = __ffs(static_cast<int>(mask)) - 1;
    mask &= mask - 1;
    const int half = bit / 2 % 2;
    const int row = join.row_sample(half);
    const int column = join.column_sample(bit / 4, bit % 2);
    if (!join.has_row(half) || (!join.across && row >= column)) continue;
    const JoinSlots& slots = join.block.slots;
    leave_small_pair(join, for_columns ? slots.slot_for_new(column) : slots.new_slot(row, column),
                     for_columns ? row : column, count);
  }
}

// What is not above the limits of its row or its column. A value that is no number stays.
__device__ __forceinline__ void leave_in_warp(const WarpJoin& join, const WarpProducts& products, int* count) {
  const JoinBlock& block = join.block;
  const float* const limits = block.memory.limits();
  uint32_t for_rows = 0;
  uint32_t for_columns = 0;
  Weighed of_rows[2];
  float new_limits[2];
  float old_limits[2];
  KITH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int sample = join.row_sample(half);
    const bool there = join.has_row(half);
    of_rows[half] = weighed(block, sample, there);
    new_limits[half] = there && !join.across ? limits[sample] : -HUGE_VALF;
    old_limits[half] = there ? limits[block.slots.apart + sample] : -HUGE_VALF;
  }
  KITH_UNROLL
  for (int j = 0; j < kColumnGroups; ++j) {
    if (8 * j >= join.shape.columns) break;
    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      const int sample = join.column_sample(j, side);
      if (!join.has_column(j, side)) continue;
      const Weighed of_column = weighed(block, sample, true);
      const float limit = limits[block.slots.slot_for_new(sample)];
      const bool old = join.is_old(sample);
      KITH_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float product = products[j][2 * half + side];
        const uint32_t bit = 1u << (4 * j + 2 * half + side);
        if (!(of_column.value(product) > (old ? old_limits[half] : new_limits[half]))) for_rows |= bit;
        if (!(of_rows[half].value(product) > limit)) for_columns |= bit;
      }
    }
  }
  leave_masked(join, for_rows, false, count);
  leave_masked(join, for_columns, true, count);
}

// The samples' numbers, ends, bounds and weights. `largest` gets the bits of the largest norm and residual.
template <JoinSize kSize>
__device__ __forceinline__ void fetch_samples(const JoinBlock& join, uint32_t row, uint32_t* largest) {
  constexpr int kThreads = threads_of(kSize);
  constexpr int kParts = (small_samples(kSize) + kThreads - 1) / kThreads;
  const JoinTask& task = join.task;
  const uint32_t* const numbers = task.samples.collected(row);
  uint32_t ids[kParts];
  KITH_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const int i = part * kThreads + static_cast<int>(threadIdx.x);
    ids[part] = i < join.counts().all() ? __ldg(numbers + i) : kNobody;
  }
  float norm = 0;
  float residual = 0;
  KITH_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const uint32_t id = ids[part];
    if (id == kNobody) continue;
    const int i = part * kThreads + static_cast<int>(threadIdx.x);
    // Operands begin to come while the bounds are waited for.
    const std::byte* const operand = task.operands.halves +
                                     static_cast<int64_t>(id / kOperandTile) * task.operands.chunks * kTileChunkBytes +
                                     id % kOperandTile * kChunkBytes;
#pragma unroll 1
    for (int chunk = 0; chunk < min(static_cast<int>(task.operands.chunks), kMostPrefetched); ++chunk) {
      ptx::prefetch(operand + chunk * kTileChunkBytes);
    }
    const JoinBounds bounds = task.operands.bounds[id];
    join.memory.ids()[i] = id;
    join.memory.ends()[i] = task.lists.ends[id];
    join.memory.bounds()[i] = bounds;
    join.memory.weights()[i] = bounds.scale > 0 ? join_weight(task.rows.kind, bounds) : NAN;
    if (!(bounds.scale > 0)) continue;
    norm = fmaxf(norm, bounds.norm * join_factor(task.rows.kind, bounds));
    residual = fmaxf(residual, bounds.residual * join_factor(task.rows.kind, bounds));
  }
  const uint32_t most_norm = __reduce_max_sync(kAllLanes, __float_as_uint(norm));
  const uint32_t most_residual = __reduce_max_sync(kAllLanes, __float_as_uint(residual));
  if (lane_index() == 0) {
    atomicMax(largest, most_norm);
    atomicMax(largest + 1, most_residual);
  }
}

template <JoinSize kSize>
__global__ void __launch_bounds__(threads_of(kSize), blocks_per_processor(kSize))
    small_join_kernel(const __grid_constant__ JoinTask task) {
  constexpr int kThreads = threads_of(kSize);
  __shared__ int left;
  __shared__ int needed;
  __shared__ uint32_t largest[2];
  const uint32_t row = task.joins[task.first + blockIdx.x];
  const JoinCounts counts = unpack_counts(task.samples.counts[row]);
  const bool across = task.boundary > 0;
  const JoinBlock join{task, {product_bytes(kSize), small_room(kSize)}, {counts, across}, across ? counts.fresh : 0};
  const SmallJoin small{join, shape_of(counts, across), across};
  if (threadIdx.x == 0) {
    left = needed = 0;
    largest[0] = largest[1] = 0;
  }
#pragma unroll 1
  for (int slot = static_cast<int>(threadIdx.x); slot < join.slots.count(); slot += kThreads) {
    join.memory.nearest()[slot] = kPadding;
    join.memory.least()[slot] = kNanKey;
    join.memory.hits()[slot] = 0;
  }
  small_barrier<kThreads>();
  fetch_samples<kSize>(join, row, largest);
  small_barrier<kThreads>();
  const OperandBounds others{__uint_as_float(largest[0]), __uint_as_float(largest[1])};
  if constexpr (kSize == JoinSize::one_warp) {
    const WarpJoin mine{small};
    WarpProducts products;
    multiply_in_warp(mine, products);
    note_warp_rows(mine, products);
    note_warp_columns(mine, products);
    __syncwarp();
    set_limits<kThreads>(join, others);
    __syncwarp();
    leave_in_warp(mine, products, &left);
  } else {
    multiply_small(small);
    __syncthreads();
    drop_small_selves(small);
    __syncthreads();
    note_small(small);
    __syncthreads();
    set_limits<kThreads>(join, others);
    __syncthreads();
    leave_small(small, &left);
  }
  small_barrier<kThreads>();
  const bool all = left > kSmallLeftRoom;
  if (!all) choose_needed<kThreads>(join, left, others, &needed);
  small_barrier<kThreads>();
  compute_keys<true, kThreads>(join, all ? counts.fresh * (counts.all() - join.first_column) : needed, all);
  small_barrier<kThreads>();
  offer_nearest<kThreads>(join);
}

template <JoinSize kSize>
void launch_small(const JoinTask& task, cudaStream_t stream) {
  const int64_t bytes = product_bytes(kSize) + small_room(kSize).bytes();
  launch(small_join_kernel<kSize>, Grid::of(task.count, threads_of(kSize)).with_shared(bytes), stream, task);
}

}  // namespace

void launch_small_join(const JoinTask& task, JoinSize size, cudaStream_t stream) {
  if (size == JoinSize::one_warp) return launch_small<JoinSize::one_warp>(task, stream);
  launch_small<JoinSize::two_warps>(task, stream);
}

}  // namespace kith
