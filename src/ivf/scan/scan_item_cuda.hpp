// An item of the scan of lists, as a block takes it: which list, which of its vectors, which of its queries.
#pragma once

#include "cuda/device_core.hpp"
#include "ivf/scan/scan_lists_task_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kTileQueries = 8;  // of the matrix units

struct ScanItem {
  uint32_t list;
  uint32_t first_pair;
  int queries;         // 0: no more items
  uint32_t first_row;  // in the list; of the first pass before it is spread over the list
  int rows;
  uint32_t every;  // the pass takes one of this many tiles of the list

  // Where in the list the vector of this number is, counted as first_row.
  __device__ uint32_t row_at(uint32_t number) const { return sampled_row(number, every); }
};

// The item of this number among those of the list. kListed: of the pairs that PairOperands lists, which may be none.
template <bool kFirst, bool kListed = false>
__device__ inline ScanItem make_item(const ScanListsTask& task, int64_t list, uint32_t index) {
  const auto length = static_cast<uint32_t>(task.lists.offsets[list + 1] - task.lists.offsets[list]);
  const uint32_t first = task.counts[2 * list];
  const uint32_t later = task.counts[2 * list + 1];
  const int run = kFirst ? task.cut.first_run_rows : task.cut.later_run_rows;
  const int group = task.cut.group_queries;
  ScanPart part = kFirst ? first_part(task.cut, length, first) : later_part(task.cut, length, first, later, 0);
  uint32_t runs = part.runs(run);
  uint32_t groups = part.groups(group);
  int number = 0;  // of the part
  if (!kFirst && index >= runs * groups) {
    index -= runs * groups;
    number = 1;
    part = later_part(task.cut, length, first, later, 1);
    runs = part.runs(run);
    groups = part.groups(group);
  }
  uint32_t start = task.starts[2 * list];
  if constexpr (kListed && !kFirst) {
    const uint32_t* const listed = task.operands.listed + 2 * list;
    part = later_part(task.cut, length, listed[0], listed[1], number);
    start += first - listed[0];
  }
  // Groups of nearly the same number of queries.
  const uint32_t pairs = part.end_pair - part.first_pair;
  const uint32_t each = cut_into(cut_into(pairs, static_cast<int>(groups)), kTileQueries) * kTileQueries;
  const uint32_t first_query = index / runs * each;
  const uint32_t first_row = part.first_row + index % runs * static_cast<uint32_t>(run);
  ScanItem item;
  item.list = static_cast<uint32_t>(list);
  item.first_pair = start + part.first_pair + first_query;
  // Never 0 where all are listed: each is no more than a group.
  item.queries = kListed && first_query >= pairs ? 0 : static_cast<int>(min(pairs - first_query, each));
  item.first_row = first_row;
  item.rows = static_cast<int>(min(part.end_row - first_row, static_cast<uint32_t>(run)));
  item.every = kFirst ? task.cut.every_of(length) : 1;
  return item;
}

// Takes the next free item; called by a warp. If there is none, the item has no queries.
template <bool kFirst>
__device__ inline ScanItem take_item(const ScanListsTask& task, uint32_t all_items) {
  uint32_t index = 0;
  if (threadIdx.x % 32 == 0) index = atomicAdd(task.counter, 1u);
  index = __shfl_sync(0xFFFFFFFFu, index, 0);
  if (index >= all_items) return {};
  const int64_t list = list_of_warp(task.items, task.lists.lists, index);
  return make_item<kFirst>(task, list, index - task.items[list]);
}

}  // namespace kith
