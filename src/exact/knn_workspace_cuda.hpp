// The device memory of a k-NN search: beside what every search has (search_workspace_cuda.hpp) its lists.
#pragma once

#include "exact/search_workspace_cuda.hpp"
#include "exact/tile_select_layout.hpp"

#include <cstdint>

namespace kith {

// Of the direct engine, which takes what the product engine leaves.
inline TileSelectShape tile_select_shape(const SearchTask& task, const KnnCudaPlan& plan) {
  return {plan.query_tile, plan.row_tile, plan.selects_tiles ? task.k : 0, plan.multiprocessors};
}

struct KnnWorkspace : SearchWorkspace {
  Slot<uint64_t> lists;    // query_batch x k neighbours
  Slot<uint32_t> bounds;   // of the direct engine: query_batch keys
  Slot<uint64_t> found;    // of products: the neighbours in one piece, batch x k
  Slot<std::byte> select;  // a TileSelectLayout

  KnnWorkspace(const SearchTask& task, const KnnCudaPlan& plan) : SearchWorkspace(task, plan) {
    lists = take<uint64_t>(plan.query_batch, task.k);
    bounds = take<uint32_t>(plan.product ? 0 : plan.query_batch);
    found = take<uint64_t>(plan.product_queries(), task.k);
    select = take_layout(TileSelectLayout(tile_select_shape(task, plan)));
  }
};

}  // namespace kith
