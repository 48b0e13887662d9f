#include "kernels/matrix/sift_groups_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "kernels/matrix/operand_layout.hpp"

namespace kith {
namespace {

constexpr int kSiftThreads = 128;
constexpr int kListThreads = 256;
constexpr int kGroupRows = kGroupRowsPerTile;
constexpr int kRowTiles = kGroupRows / 16;  // of the matrix units
constexpr uint32_t kNothingSure = 0xFFFFFFFFu;
constexpr int kLaneUnits = 2;  // of sixteen bytes of a chunk, of each row: four lanes share it

struct SiftMemory {
  uint32_t* counts;
  uint32_t* totals;
  uint32_t* places;
  uint32_t* queries;
  SiftItem* items;
};

// A thread for each query and selected group.
struct Pair {
  int64_t query;
  bool wanted;
  int32_t group;

  __device__ explicit Pair(const SiftTask& task) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kListThreads + threadIdx.x;
    query = i / task.stride;
    wanted = query < task.operands.query_count && i % task.stride < task.group_counts[query];
    group = wanted ? task.groups[i] : 0;
  }
};

__global__ void __launch_bounds__(kListThreads) count_groups_kernel(SiftTask task, SiftMemory memory) {
  const Pair pair(task);
  if (pair.wanted) atomicAdd(&memory.counts[pair.group], 1u);
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kListThreads + threadIdx.x;
  if (query < task.operands.query_count) {
    task.candidates.counts[query] = task.group_counts[query] < 0 ? kNothingSure : 0;
  }
}

// A thread for each group. Places and items are taken in no order, those of a warp's groups together.
__global__ void __launch_bounds__(kListThreads) place_groups_kernel(int64_t groups, SiftMemory memory) {
  const int64_t group = static_cast<int64_t>(blockIdx.x) * kListThreads + threadIdx.x;
  const uint32_t count = group < groups ? memory.counts[group] : 0;
  const uint32_t items = (count + kSiftQueries - 1) / kSiftQueries;
  const uint32_t counted = warp_inclusive(count);
  const uint32_t itemized = warp_inclusive(items);
  uint32_t first_place = 0;
  uint32_t first_item = 0;
  if (lane_index() == 31 && counted > 0) {
    first_place = atomicAdd(&memory.totals[0], counted);
    first_item = atomicAdd(&memory.totals[1], itemized);
  }
  const uint32_t place = __shfl_sync(kAllLanes, first_place, 31) + counted - count;
  const uint32_t item = __shfl_sync(kAllLanes, first_item, 31) + itemized - items;
  if (count > 0) memory.places[group] = place;
  for (uint32_t i = 0; i < items; ++i) {
    const uint32_t before = i * kSiftQueries;
    const uint32_t some = count - before < kSiftQueries ? count - before : kSiftQueries;
    memory.items[item + i] = {static_cast<uint32_t>(group), place + before, some};
  }
}

__global__ void __launch_bounds__(kListThreads) list_queries_kernel(SiftTask task, SiftMemory memory) {
  const Pair pair(task);
  if (pair.wanted) memory.queries[atomicAdd(&memory.places[pair.group], 1u)] = static_cast<uint32_t>(pair.query);
}

// A lane's units of one row and chunk: those numbered lane % 4 and 4 more, wherever swizzling has put them.
struct LaneUnits {
  uint4 units[kLaneUnits];

  __device__ void load(const std::byte* row, int chunk, int swizzle) {
    const int lane = lane_index() % 4;
    KITH_UNROLL
    for (int i = 0; i < kLaneUnits; ++i) {
      const int64_t unit = (lane + 4 * i) ^ swizzle;
      units[i] = load_vector<uint4>(row + int64_t{chunk} * kTileChunkBytes + unit * 16);
    }
  }
};

__device__ const std::byte* operand_row(const std::byte* operands, int64_t row, int64_t chunks) {
  return operands + (row / kOperandTile * chunks * kOperandTile + row % kOperandTile) * kChunkBytes;
}

// Any order of the columns will do that both sides share: a lane's sixteen bytes are four words, two for each of two
// steps of the matrix units.
__device__ void multiply_units(float (&products)[kRowTiles][4], const LaneUnits (&rows)[kRowTiles][2],
                               const LaneUnits& query) {
  KITH_UNROLL
  for (int i = 0; i < kLaneUnits; ++i) {
    const uint4 q = query.units[i];
    const uint32_t first[2] = {q.x, q.y};
    const uint32_t second[2] = {q.z, q.w};
    KITH_UNROLL
    for (int tile = 0; tile < kRowTiles; ++tile) {
      const uint4 low = rows[tile][0].units[i];
      const uint4 high = rows[tile][1].units[i];
      ptx::multiply_add(products[tile], {low.x, high.x, low.y, high.y}, first);
      ptx::multiply_add(products[tile], {low.z, high.z, low.w, high.w}, second);
    }
  }
}

// A warp takes item after item. Lane 4 g + t reads rows g, g + 8, ... of the group and query g of the item; it has the
// products of the former with queries 2 t and 2 t + 1.
__global__ void __launch_bounds__(kSiftThreads) sift_kernel(SiftTask task, SiftMemory memory) {
  const ProductOperands& operands = task.operands;
  const int chunks = static_cast<int>(operands.chunks);
  const int lane = lane_index();
  const int of_eight = lane / 4;
  const uint32_t items = memory.totals[1];
  const uint32_t warps = gridDim.x * (kSiftThreads / 32);
  for (uint32_t i = blockIdx.x * (kSiftThreads / 32) + threadIdx.x / 32; i < items; i += warps) {
    const SiftItem item = memory.items[i];
    const uint32_t* const queries = memory.queries + item.first;
    const int64_t query = queries[of_eight < static_cast<int>(item.count) ? of_eight : 0];
    const std::byte* const query_row = operand_row(operands.queries, query, chunks);
    const int query_swizzle = static_cast<int>(query % 8);
    const std::byte* group_rows[kRowTiles][2];
    KITH_UNROLL
    for (int j = 0; j < 2 * kRowTiles; ++j) {
      group_rows[j / 2][j % 2] = operand_row(operands.base, group_row(item.group, 8 * j + of_eight, 1), chunks);
    }
    const int row_swizzle = static_cast<int>(item.group % kGroupsPerTile) * 2 + of_eight % 2;  // of all of its rows

    float products[kRowTiles][4] = {};
#pragma unroll 2
    for (int chunk = 0; chunk < chunks; ++chunk) {
      LaneUnits query_units;
      LaneUnits row_units[kRowTiles][2];
      query_units.load(query_row, chunk, query_swizzle);
      KITH_UNROLL
      for (int j = 0; j < 2 * kRowTiles; ++j) {
        row_units[j / 2][j % 2].load(group_rows[j / 2][j % 2], chunk, row_swizzle);
      }
      multiply_units(products, row_units, query_units);
    }

    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      const int mine = lane % 4 * 2 + side;
      if (mine >= static_cast<int>(item.count)) continue;
      const int64_t of = queries[mine];
      const float threshold = task.candidates.thresholds[of];
      KITH_UNROLL
      for (int j = 0; j < 2 * kRowTiles; ++j) {
        const int64_t row = group_row(item.group, 8 * j + of_eight, 1);
        const float value = static_cast<const float*>(operands.terms)[row] + products[j / 2][j % 2 * 2 + side];
        if (!(value <= threshold) || row >= operands.row_count) continue;
        const uint32_t place = atomicAdd(&task.candidates.counts[of], 1u);
        if (place < task.candidates.capacity) {
          task.candidates.rows[of * task.candidates.capacity + place] = static_cast<uint32_t>(row);
        }
      }
    }
  }
}

}  // namespace

void launch_sift(const SiftTask& task, const SiftLayout& layout, std::byte* memory, cudaStream_t stream) {
  if (task.operands.query_count == 0) return;
  const SiftMemory parts{layout.counts.in(memory), layout.totals.in(memory), layout.places.in(memory),
                         layout.queries.in(memory), layout.items.in(memory)};
  fill_bytes(parts.counts, 0, layout.places.offset - layout.counts.offset, stream);
  const int64_t groups = group_count(task.operands.row_count, 1);
  const Grid pairs = Grid::of(divide_up(task.operands.query_count * task.stride, kListThreads), kListThreads);
  launch(count_groups_kernel, pairs, stream, task, parts);
  launch(place_groups_kernel, Grid::of(divide_up(groups, kListThreads), kListThreads), stream, groups, parts);
  launch(list_queries_kernel, pairs, stream, task, parts);
  constexpr int kBlocks = 6;  // of a multiprocessor at a time, some
  launch(sift_kernel, Grid::of(int64_t{kBlocks} * task.multiprocessors, kSiftThreads), stream, task, parts);
}

}  // namespace kith
