// What the plan of an exact search on a GPU settles. Plain data: knn_plan_cuda makes it, the workspaces are laid out by
// it.
#pragma once

#include "exact/search_batches.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cstdint>

namespace kith {

// How a GPU finds a query's neighbours.
enum class CudaEngine : uint8_t {
  automatic,
  product,  // products on the matrix units choose candidates; queries of which they cannot be sure go the other way
  direct,   // every canonical key
};

// Of the product engine.
struct ProductPlan {
  ProductEngine engine = ProductEngine::automatic;
  OperandType operands = OperandType::half;
  bool operands_ready = false;  // a prepared base has them
  int64_t queries = 0;          // searched at a time
  int64_t rows = 0;             // of the base, at a time
  int tiles_per_group = 2;
  int rows_per_part = 0;       // 8: of so small groups, where k is large beside the rows; 0: of tiles_per_group
  int rows_per_minimum = 0;    // of the coarse path (kernels/rerank/coarse_plan.hpp); 0: another
  int64_t row_tile_bytes = 0;  // likewise: shared memory for re-ranking by tiles of rows; 0: query by query
  int64_t capacity = 0;  // candidates that a second product may find for each query; 0: whole groups are candidates
  int64_t room = 0;      // of these, as near as a neighbour can be
  int64_t retry_capacity = 0;  // the same of a query that has failed, when it is tried again
  int64_t retry_room = 0;
  int64_t selected = 0;  // groups selected for each query; 0: only their k-th minimum is found
  int64_t select_bytes = 0;
  int multiprocessors = 0;
};

struct KnnCudaPlan : SearchBatches {
  int64_t pinned_bytes = 0;  // host memory that rows pass through on their way
  int64_t gather_bytes = 0;  // the same for rows by number, where none is pinned
  CudaEngine engine = CudaEngine::direct;
  int64_t query_tile = 0;  // of the direct engine, which takes what the product engine leaves
  int64_t row_tile = 0;
  int multiprocessors = 0;
  bool selects_tiles = true;  // of the direct engine, where k is small enough; else lists take less memory
  int64_t hits = 0;           // range search: rows found that the device holds at a time
  ProductPlan product;

  bool products() const { return engine == CudaEngine::product; }
};

}  // namespace kith
