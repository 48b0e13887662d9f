// Which rows of the groups selected for each query its threshold leaves: a product of these pairs alone, after that of
// all pairs has told which groups can hold a neighbour.
//
// Queries are listed by group, so that a group's operands come from device memory once for all queries that want it,
// and come as halves: re-ranking whole groups would read 32 rows, as they are stored, for the one or two that count.
// Eight queries of a group are an item, which a warp multiplies straight from the operands. Time is that of reading
// the operands of the groups that are wanted, at most those of the whole base where queries are few for each group.
#pragma once

#include "cuda/workspace_layout.hpp"
#include "kernels/matrix/product_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// Queries of one group that are multiplied at a time.
struct SiftItem {
  uint32_t group;
  uint32_t first;  // in the list of queries
  uint32_t count;  // up to kSiftQueries
};
inline constexpr int kSiftQueries = 8;

struct SiftLayout : WorkspaceLayout {
  Slot<uint32_t> counts;  // queries of each group; zeroed, with the totals behind it
  Slot<uint32_t> totals;  // queries listed, items
  Slot<uint32_t> places;  // of each group in the list
  Slot<uint32_t> queries;
  Slot<SiftItem> items;
  Slot<uint32_t> rows;  // for what is found: queries x capacity

  SiftLayout(int64_t query_count, int64_t groups, int64_t selected, int64_t capacity) {
    const int64_t pairs = query_count * selected;
    counts = take<uint32_t>(groups);
    totals = take<uint32_t>(2);
    places = take<uint32_t>(groups);
    queries = take<uint32_t>(pairs);
    items = take<SiftItem>(groups + pairs / kSiftQueries);
    rows = take<uint32_t>(query_count, capacity);
  }
};

struct SiftTask {
  ProductOperands operands;               // halves
  const int32_t* groups = nullptr;        // queries x stride: groups of one tile (operand_layout.hpp)
  const int32_t* group_counts = nullptr;  // of each query; below zero where nothing is sure
  int64_t stride = 0;
  // What it finds; nothing is zeroed before. A query of which nothing is sure gets a count above the capacity.
  ProductCandidates candidates;
  int multiprocessors = 0;
};

// `memory` is that of a SiftLayout for these queries, or more, the base's groups and the stride. Enqueues and returns.
void launch_sift(const SiftTask& task, const SiftLayout& layout, std::byte* memory, cudaStream_t stream);

}  // namespace kith
