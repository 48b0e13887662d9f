// The products of a join by two warps (small_join_cuda.cu) in shared memory, and their evaluation for its samples; and
// how a warp reads and multiplies operands.
#pragma once

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/ptx.hpp"
#include "cuda/vector_access.hpp"
#include "graph/build/nn_descent/join_memory_cuda.hpp"
#include "graph/build/nn_descent/join_nearest_cuda.hpp"
#include "graph/build/nn_descent/join_slots.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/select/device_warp_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kSmallTileRows = 16;
inline constexpr int kSmallTileColumns = 32;
// From one row of products to the next: 8 banks apart, so that the matrix units' values are stored without conflicts.
inline constexpr int kProductStride = kSmallColumns + 8;

// The address of the lane's first unit of a row, of four in neighbouring lanes; a chunk's second unit is 64 bytes away.
struct UnitAt {
  const std::byte* from = nullptr;  // null: there is no such row
  int to_second = 0;

  __device__ UnitAt(const JoinOperands& operands, const uint32_t* id) {
    if (id == nullptr) return;
    const uint32_t row = *id;
    from = operands.halves + static_cast<int64_t>(row / kOperandTile) * operands.chunks * kTileChunkBytes +
           row % kOperandTile * kChunkBytes + ((threadIdx.x % 4 ^ row % 8) * 16);
    to_second = row % 8 < 4 ? 64 : -64;
  }
  __device__ void load(int64_t offset, uint4 (&units)[2]) const {
    units[0] = units[1] = make_uint4(0, 0, 0, 0);
    if (from == nullptr) return;
    units[0] = __ldg(vectors<uint4>(from + offset));
    units[1] = __ldg(vectors<uint4>(from + offset + to_second));
  }
};

// A join as its threads see it.
struct SmallJoin {
  const JoinBlock& block;
  JoinShape shape;
  bool across;

  __device__ float* products() const { return reinterpret_cast<float*>(join_shared); }
  // Whether a sample that is a column is of the second kind of a row's slots; in a merge there is one kind.
  __device__ bool is_old(int sample) const { return across || sample >= block.counts().fresh; }
  __device__ UnitAt row_unit(int row) const {
    return {block.task.operands, row < shape.rows ? block.memory.ids() + shape.first_row + row : nullptr};
  }
  __device__ UnitAt column_unit(int column) const {
    return {block.task.operands, column < shape.columns ? block.memory.ids() + shape.first_column + column : nullptr};
  }
};

// Adds the products of a chunk of 16 rows, of which the lane has g and g + 8, and 8 columns, of which it has g: lane 4
// g + t gets those of its rows with columns 2 t and 2 t + 1.
__device__ __forceinline__ void multiply_units(const uint4 (&rows)[2][2], const uint4 (&column)[2], float (&sums)[4]) {
  KITH_UNROLL
  for (int unit = 0; unit < 2; ++unit) {
    const uint4& even = rows[0][unit];
    const uint4& odd = rows[1][unit];
    const uint32_t lower[2] = {column[unit].x, column[unit].y};
    const uint32_t upper[2] = {column[unit].z, column[unit].w};
    ptx::multiply_add(sums, {even.x, odd.x, even.y, odd.y}, lower);
    ptx::multiply_add(sums, {even.z, odd.z, even.w, odd.w}, upper);
  }
}

// A warp multiplies 16 rows with 32 columns.
__device__ __forceinline__ void multiply_small_tile(const SmallJoin& join, int first_row, int first_column) {
  constexpr int kGroups = kSmallTileColumns / 8;
  const int group = lane_index() / 4;
  const UnitAt rows[2] = {join.row_unit(first_row + group), join.row_unit(first_row + group + 8)};
  const int column = first_column + group;
  const UnitAt columns[kGroups] = {join.column_unit(column), join.column_unit(column + 8),
                                   join.column_unit(column + 16), join.column_unit(column + 24)};
  float sums[kGroups][4] = {};
#pragma unroll 1
  for (int64_t chunk = 0; chunk < join.block.task.operands.chunks; ++chunk) {
    uint4 a[2][2];
    uint4 b[kGroups][2];
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) rows[i].load(chunk * kTileChunkBytes, a[i]);
    KITH_UNROLL
    for (int n = 0; n < kGroups; ++n) columns[n].load(chunk * kTileChunkBytes, b[n]);
    KITH_UNROLL
    for (int n = 0; n < kGroups; ++n) multiply_units(a, b[n], sums[n]);
  }
  float* const to = join.products() + (first_row + group) * kProductStride + first_column + lane_index() % 4 * 2;
  KITH_UNROLL
  for (int n = 0; n < kGroups; ++n) {
    store_vector(to + 8 * n, make_float2(sums[n][0], sums[n][1]));
    store_vector(to + 8 * kProductStride + 8 * n, make_float2(sums[n][2], sums[n][3]));
  }
}

// All tiles, the two warps in turn.
__device__ __forceinline__ void multiply_small(const SmallJoin& join) {
  const int abreast = join.shape.columns > kSmallTileColumns ? 2 : 1;
  const int tiles = (join.shape.rows + kSmallTileRows - 1) / kSmallTileRows * abreast;
#pragma unroll 1
  for (int tile = static_cast<int>(threadIdx.x) / 32; tile < tiles; tile += 2) {
    multiply_small_tile(join, tile / abreast * kSmallTileRows, tile % abreast * kSmallTileColumns);
  }
}

// A sample is not compared with itself: its product becomes that of what is farthest.
__device__ __forceinline__ void drop_small_selves(const SmallJoin& join) {
  const int sample = static_cast<int>(threadIdx.x);
  if (!join.across && sample < join.shape.rows) join.products()[sample * (kProductStride + 1)] = -HUGE_VALF;
}

__device__ inline uint32_t least_key(float least) { return least < HUGE_VALF ? ordered_key(least) : kNanKey; }

// The least values of the slots: of a row among the columns of each kind, of a column among all rows; NEW columns with
// NEW rows are covered by the rows. One thread per column.
__device__ __forceinline__ void note_small(const SmallJoin& join) {
  uint32_t* const least = join.block.memory.least();
  const int column = static_cast<int>(threadIdx.x);
  const int other = join.shape.first_column + column;
  const bool there = column < join.shape.columns;
  const bool old = join.is_old(other);
  const Weighed of_column = weighed(join.block, other, there);
  float least_of_column = HUGE_VALF;
#pragma unroll 2
  for (int row = 0; row < join.shape.rows; ++row) {
    const int sample = join.shape.first_row + row;
    const float product = join.products()[row * kProductStride + column];
    const uint32_t key = least_key(of_column.value(product));
    least_of_column = fminf(least_of_column, weighed(join.block, sample, true).value(product));
    const uint32_t among_old = __reduce_min_sync(kAllLanes, old ? key : kNanKey);
    if (lane_index() == 0) atomicMin(least + join.block.slots.apart + sample, among_old);
    if (join.across) continue;
    const uint32_t among_new = __reduce_min_sync(kAllLanes, old ? kNanKey : key);
    if (lane_index() == 0) atomicMin(least + sample, among_new);
  }
  if (there && old) least[join.block.slots.old_slot(other)] = least_key(least_of_column);
}

__device__ inline void leave_small_pair(const SmallJoin& join, int slot, int other, int* count) {
  const int place = atomicAdd(count, 1);
  if (place >= join.block.memory.room.left) return;
  join.block.memory.left()[place] = {static_cast<uint16_t>(slot), static_cast<uint16_t>(other)};
  atomicAdd(join.block.memory.hits() + slot, 1u);
}

// What is not above the limits of its row or its column. A value that is no number stays. NEW samples, who are rows and
// columns, meet where the row is the smaller.
__device__ __forceinline__ void leave_small(const SmallJoin& join, int* count) {
  const int column = static_cast<int>(threadIdx.x);
  if (column >= join.shape.columns) return;
  const JoinBlock& block = join.block;
  const float* const limits = block.memory.limits();
  const int other = join.shape.first_column + column;
  const Weighed of_column = weighed(block, other, true);
  const int slot = block.slots.slot_for_new(other);
  const float limit = limits[slot];
  const int apart = join.is_old(other) ? block.slots.apart : 0;
  const int end = join.is_old(other) ? join.shape.rows : min(join.shape.rows, column);
#pragma unroll 2
  for (int row = 0; row < end; ++row) {
    const int sample = join.shape.first_row + row;
    const float product = join.products()[row * kProductStride + column];
    if (!(of_column.value(product) > limits[apart + sample])) leave_small_pair(join, apart + sample, other, count);
    if (!(weighed(block, sample, true).value(product) > limit)) leave_small_pair(join, slot, sample, count);
  }
}

}  // namespace kith
