// Where a search on a GPU keeps what k-NN and range search have in common, in the one block of device memory it takes:
// the plan counts these bytes and the backends lay out by them, so what is used is what was planned.
//
// A part that a search does not need has no bytes.
#pragma once

#include "core/byte_size.hpp"
#include "cuda/workspace_layout.hpp"
#include "exact/knn_plan_cuda.hpp"
#include "exact/product_layout_cuda.hpp"
#include "exact/search_task.hpp"
#include "kernels/matrix/operand_facts.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "rows/kept_rows.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// What the host looks at when a batch is done.
struct SearchStatus {
  uint32_t bad_query = 0;  // the first that is not finite
  uint32_t bad_row = 0;
  uint32_t negative_query = 0;  // the first with a value below zero, where that matters
  uint32_t negative_row = 0;
  uint32_t failed = 0;  // queries of a batch that products are not sure of
  uint32_t left = 0;    // of those, what a second try leaves to the direct engine
  uint32_t hits = 0;    // rows found by a range search
};

// Rows of the base that come, or are made something of, at a time.
inline int64_t piece_rows(const KnnCudaPlan& plan) { return plan.product ? plan.product->rows : plan.row_tile; }

// Whether a search reads the rows where they lie.
inline bool rows_stay(const SearchTask& task) {
  return task.prepared || task.shape.base_space.kind == MemoryKind::cuda;
}

// Whether a piece comes while the one before it is searched, to a second place.
inline bool rows_come_ahead(const SearchTask& task, const KnnCudaPlan& plan) {
  return plan.product && !rows_stay(task) && task.base_in_memory() && task.rows > plan.product->rows;
}

inline ProductShape product_shape(const SearchTask& task, const KnnCudaPlan& plan) {
  ProductShape shape;
  shape.kind = key_kind(task.shape.metric);
  shape.cols = task.shape.cols;
  shape.k = task.within() ? 0 : task.k;
  shape.query_dtype = task.shape.query_dtype;
  shape.check_finite = task.wish.check_finite;
  shape.query_tile = plan.query_tile;
  shape.product = plan.product.value_or(ProductPlan());
  return shape;
}

struct SearchWorkspace : WorkspaceLayout {
  Slot<std::byte> queries;     // query_batch x cols, as they came
  Slot<double> query_norms;    // inverse norms
  Slot<std::byte> rows;        // a piece x cols, as they came
  Slot<std::byte> rows_ahead;  // the same, of every other piece
  Slot<double> row_norms;      // inverse norms
  Slot<uint32_t> list;         // numbers of kept rows: of a piece, or of a tile where rows are masked
  Slot<uint64_t> kept;         // a filter's bits, of the whole base
  Slot<uint32_t> ranks;        // how many rows are kept before every 4,096th
  Slot<uint32_t> keys;         // query_tile x row_tile
  Slot<SearchStatus> status;

  // Of products: operands of a piece, product.rows, and what a batch of queries takes.
  Slot<std::byte> base_operands;
  Slot<uint32_t> base_terms;  // f32 or i32, for each row of its tiles; where rows are masked, theirs
  Slot<float> centre;         // cols
  Slot<BaseFacts> base_facts;
  Slot<std::byte> products;   // a ProductLayout

  SearchWorkspace(const SearchTask& task, const KnnCudaPlan& plan) {
    const bool masked = task.filter == FilterPath::mask;
    const bool listed = task.filter == FilterPath::list;
    const int64_t norms = task.shape.metric == Metric::cosine ? 1 : 0;  // of a vector
    const int64_t piece = piece_rows(plan);
    queries = take_rows(plan.query_batch, task.shape.cols, task.shape.query_dtype);
    query_norms = take<double>(plan.query_batch, norms);
    rows = take_rows(rows_stay(task) ? 0 : piece, task.shape.cols, task.shape.base_dtype);
    rows_ahead = take_rows(rows_come_ahead(task, plan) ? piece : 0, task.shape.cols, task.shape.base_dtype);
    const int64_t new_norms = task.prepared && !listed ? 0 : piece;
    row_norms = take<double>(masked ? std::max(new_norms, plan.row_tile) : new_norms, norms);
    list = take<uint32_t>(listed ? piece : masked ? plan.row_tile : 0);
    const int64_t filtered_rows = masked ? task.rows : listed ? task.shape.rows : 0;
    kept = take<uint64_t>(KeptRows::words_for(filtered_rows));
    ranks = take<uint32_t>(KeptRows::ranks_for(filtered_rows));
    keys = take<uint32_t>(task.keys_in_place() ? 0 : plan.query_tile, plan.row_tile);
    status = take<SearchStatus>(1);
    if (plan.product) take_products(task, product_shape(task, plan));
  }

 private:
  void take_products(const SearchTask& task, const ProductShape& shape) {
    const ProductPlan& product = shape.product;
    const int64_t new_operands = product.operands_ready ? 0 : product.rows;
    const int64_t new_terms = task.filter == FilterPath::mask ? product.rows : new_operands;
    base_operands =
        take<std::byte>(operand_tiles(new_operands), saturating_multiply(shape.chunks(), kTileChunkBytes));
    base_terms = take<uint32_t>(operand_tiles(new_terms) * kOperandTile);
    centre = take<float>(task.shape.cols);
    base_facts = take<BaseFacts>(1);
    products = take_layout(ProductLayout(shape));
  }
};

}  // namespace kith
