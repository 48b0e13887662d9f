// The device memory of a k-NN search: beside what every search has (search_workspace_cuda.hpp) its lists.
#pragma once

#include "exact/search_workspace_cuda.hpp"
#include "exact/tile_select_layout.hpp"

#include <cstdint>

namespace kith {

// Of the direct engine, which takes what the product engine leaves.
inline TileSelectShape tile_select_shape(const SearchTask& task, const KnnCudaPlan& plan) {
  return {plan.query_tile, plan.row_tile, plan.selects_tiles ? task.scope.k : 0, plan.multiprocessors};
}

struct KnnWorkspace : SearchWorkspace {
  int64_t lists = 0;   // query_batch x k neighbours, u64
  int64_t bounds = 0;  // of the direct engine: query_batch keys, u32
  int64_t found = 0;   // of products: the neighbours in one piece, batch x k, u64
  int64_t select = 0;  // a TileSelectLayout

  KnnWorkspace(const SearchTask& task, const KnnCudaPlan& plan) : SearchWorkspace(task, plan) {
    const int64_t list_bytes = saturating_multiply(task.scope.k, 8);
    lists = take(plan.query_batch, list_bytes);
    bounds = take(plan.products() ? 0 : plan.query_batch, 4);
    found = take(plan.products() ? plan.product.queries : 0, list_bytes);
    select = take(1, TileSelectLayout(tile_select_shape(task, plan)).bytes);
  }
};

}  // namespace kith
