// The products of a small join (small_join_cuda.hpp), and what they say of its samples.
#pragma once

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/ptx.hpp"
#include "graph/nn_descent/join_memory_cuda.hpp"
#include "graph/nn_descent/join_nearest_cuda.hpp"
#include "graph/nn_descent/join_size.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/select/device_warp_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kSmallTileRows = 16;
inline constexpr int kSmallTileColumns = 32;
// From one row of products to the next: rows 8 banks apart, so that the matrix units' values are stored without conflicts.
inline constexpr int kProductStride = kSmallColumns + 8;

// A join as its threads see it.
struct SmallJoin {
  const JoinBlock& block;
  JoinShape shape;
  bool across;

  __device__ float* products() const { return reinterpret_cast<float*>(join_shared); }
  __device__ uint32_t row_id(int row) const { return block.memory.ids()[shape.first_row + row]; }
  __device__ uint32_t column_id(int column) const { return block.memory.ids()[shape.first_column + column]; }
  // Whether a sample that is a column is of the second kind of a row's slots; in a merge there is one kind.
  __device__ bool is_old(int sample) const { return across || sample >= block.counts().fresh; }
};

// Where the lane's first unit of a row lies, of four that neighbouring lanes have; the second of a chunk is 64 bytes away.
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
    units[0] = __ldg(reinterpret_cast<const uint4*>(from + offset));
    units[1] = __ldg(reinterpret_cast<const uint4*>(from + offset + to_second));
  }
};

// A warp multiplies 16 rows with 32 columns. Lane 4 g + t has rows g and g + 8, and columns 8 n + 2 t and 8 n + 2 t + 1.
__device__ __forceinline__ void multiply_small_tile(const SmallJoin& join, int first_row, int first_column) {
  constexpr int kGroups = kSmallTileColumns / 8;
  const JoinOperands& operands = join.block.task.operands;
  const uint32_t* const ids = join.block.memory.ids();
  const int group = lane_index() / 4;
  const auto row_at = [&](int row) {
    return UnitAt(operands, row < join.shape.rows ? ids + join.shape.first_row + row : nullptr);
  };
  const auto column_at = [&](int column) {
    return UnitAt(operands, column < join.shape.columns ? ids + join.shape.first_column + column : nullptr);
  };
  const UnitAt rows[2] = {row_at(first_row + group), row_at(first_row + group + 8)};
  const UnitAt columns[kGroups] = {column_at(first_column + group), column_at(first_column + group + 8),
                                   column_at(first_column + group + 16), column_at(first_column + group + 24)};
  float sums[kGroups][4] = {};
#pragma unroll 1
  for (int64_t chunk = 0; chunk < operands.chunks; ++chunk) {
    uint4 a[2][2];
    uint4 b[kGroups][2];
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) rows[i].load(chunk * kTileChunkBytes, a[i]);
    KITH_UNROLL
    for (int n = 0; n < kGroups; ++n) columns[n].load(chunk * kTileChunkBytes, b[n]);
    KITH_UNROLL
    for (int n = 0; n < kGroups; ++n) {
      KITH_UNROLL
      for (int unit = 0; unit < 2; ++unit) {
        const uint4& even = a[0][unit];
        const uint4& odd = a[1][unit];
        const uint32_t lower[2] = {b[n][unit].x, b[n][unit].y};
        const uint32_t upper[2] = {b[n][unit].z, b[n][unit].w};
        ptx::multiply_add(sums[n], {even.x, odd.x, even.y, odd.y}, lower);
        ptx::multiply_add(sums[n], {even.z, odd.z, even.w, odd.w}, upper);
      }
    }
  }
  float* const to = join.products() + (first_row + group) * kProductStride + first_column + lane_index() % 4 * 2;
  KITH_UNROLL
  for (int n = 0; n < kGroups; ++n) {
    *reinterpret_cast<float2*>(to + 8 * n) = {sums[n][0], sums[n][1]};
    *reinterpret_cast<float2*>(to + 8 * kProductStride + 8 * n) = {sums[n][2], sums[n][3]};
  }
}

// All tiles, a warp for each in turn.
template <int kThreads>
__device__ __forceinline__ void multiply_small(const SmallJoin& join) {
  const int across = join.shape.columns > kSmallTileColumns ? 2 : 1;
  const int tiles = (join.shape.rows + kSmallTileRows - 1) / kSmallTileRows * across;
#pragma unroll 1
  for (int tile = static_cast<int>(threadIdx.x) / 32; tile < tiles; tile += kThreads / 32) {
    multiply_small_tile(join, tile / across * kSmallTileRows, tile % across * kSmallTileColumns);
  }
}

// A sample is not compared with itself: its product becomes that of what is farthest.
__device__ __forceinline__ void drop_small_selves(const SmallJoin& join) {
  const int sample = static_cast<int>(threadIdx.x);
  if (!join.across && sample < join.shape.rows) join.products()[sample * (kProductStride + 1)] = -HUGE_VALF;
}

__device__ inline uint32_t least_key(float least) { return least < HUGE_VALF ? ordered_key(least) : kNanKey; }

// The least values of the slots: of a row among the columns of each kind, of a column among all rows; of NEW columns beside NEW
// rows the rows say it.
template <int kThreads>
__device__ __forceinline__ void note_small(const SmallJoin& join) {
  constexpr int kMine = kSmallColumns / kThreads;
  uint32_t* const least = join.block.memory.least();
  Weighed of_columns[kMine];
  float least_of[kMine];
  bool old[kMine];
  KITH_UNROLL
  for (int m = 0; m < kMine; ++m) {
    const int column = static_cast<int>(threadIdx.x) + m * kThreads;
    const int sample = join.shape.first_column + column;
    of_columns[m] = weighed(join.block, sample, column < join.shape.columns);
    least_of[m] = HUGE_VALF;
    old[m] = join.is_old(sample);
  }
#pragma unroll 2
  for (int row = 0; row < join.shape.rows; ++row) {
    const int sample = join.shape.first_row + row;
    const Weighed of_row = weighed(join.block, sample, true);
    float to_new = HUGE_VALF;
    float to_old = HUGE_VALF;
    KITH_UNROLL
    for (int m = 0; m < kMine; ++m) {
      const float product = join.products()[row * kProductStride + static_cast<int>(threadIdx.x) + m * kThreads];
      const float value = of_columns[m].value(product);
      if (old[m]) to_old = fminf(to_old, value);
      if (!old[m]) to_new = fminf(to_new, value);
      least_of[m] = fminf(least_of[m], of_row.value(product));
    }
    const uint32_t among_old = __reduce_min_sync(kAllLanes, least_key(to_old));
    if (lane_index() == 0) atomicMin(least + join.block.slots.apart + sample, among_old);
    if (join.across) continue;
    const uint32_t among_new = __reduce_min_sync(kAllLanes, least_key(to_new));
    if (lane_index() == 0) atomicMin(least + sample, among_new);
  }
  KITH_UNROLL
  for (int m = 0; m < kMine; ++m) {
    const int column = static_cast<int>(threadIdx.x) + m * kThreads;
    if (column < join.shape.columns && old[m]) {
      least[join.block.slots.old_slot(join.shape.first_column + column)] = least_key(least_of[m]);
    }
  }
}

__device__ inline void leave_small_pair(const SmallJoin& join, int slot, int other, int* count) {
  const int place = atomicAdd(count, 1);
  if (place >= join.block.memory.room.left) return;
  join.block.memory.left()[place] = {static_cast<uint16_t>(slot), static_cast<uint16_t>(other)};
  atomicAdd(join.block.memory.hits() + slot, 1u);
}

// What is not above the limits of its row or its column. A value that is no number stays. NEW samples, who are rows and columns,
// meet where the row is the smaller.
template <int kThreads>
__device__ __forceinline__ void leave_small(const SmallJoin& join, int* count) {
  const JoinBlock& block = join.block;
  const float* const limits = block.memory.limits();
#pragma unroll 1
  for (int column = static_cast<int>(threadIdx.x); column < join.shape.columns; column += kThreads) {
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
}

}  // namespace kith
