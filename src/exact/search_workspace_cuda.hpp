// Where a search on a GPU keeps what k-NN and range search have in common, in the one block of device memory it takes:
// the plan counts these bytes and the backends lay out by them, so what is used is what was planned.
//
// Offsets are from the start of the block; a part that a search does not need has no bytes.
#pragma once

#include "core/byte_size.hpp"
#include "cuda/workspace_layout.hpp"
#include "exact/cuda_search_plan.hpp"
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
inline int64_t piece_rows(const KnnCudaPlan& plan) { return plan.products() ? plan.product.rows : plan.row_tile; }

// Whether a search reads the rows where they lie.
inline bool rows_stay(const SearchTask& task) {
  return task.scope.prepared || task.shape.base_space.kind == MemoryKind::cuda;
}

// Whether a piece comes while the one before it is searched, to a second place.
inline bool rows_come_ahead(const SearchTask& task, const KnnCudaPlan& plan) {
  return plan.products() && !rows_stay(task) && task.base_in_memory() && task.scope.rows > plan.product.rows;
}

inline ProductShape product_shape(const SearchTask& task, const KnnCudaPlan& plan) {
  ProductShape shape;
  shape.kind = key_kind(task.shape.metric);
  shape.cols = task.shape.cols;
  shape.k = task.within() ? 0 : task.scope.k;
  shape.query_dtype = task.shape.query_dtype;
  shape.check_finite = task.wish.check_finite;
  shape.query_tile = plan.query_tile;
  shape.product = plan.product;
  return shape;
}

struct SearchWorkspace : WorkspaceLayout {
  int64_t queries = 0;      // query_batch x cols, as they came
  int64_t query_norms = 0;  // inverse norms, double
  int64_t rows = 0;         // a piece x cols, as they came
  int64_t rows_ahead = 0;   // the same, of every other piece
  int64_t row_norms = 0;    // inverse norms, double
  int64_t list = 0;         // numbers of kept rows, u32: of a piece, or of a tile where rows are masked
  int64_t kept = 0;         // a filter's bits, of the whole base
  int64_t ranks = 0;        // how many rows are kept before every 4,096th
  int64_t keys = 0;         // query_tile x row_tile, u32
  int64_t status = 0;       // a SearchStatus

  // Of products: operands of a piece, product.rows, and what a batch of queries takes.
  int64_t base_operands = 0;
  int64_t base_terms = 0;  // 4 bytes for each row of its tiles; where rows are masked, theirs
  int64_t centre = 0;      // cols, f32
  int64_t base_facts = 0;  // one
  int64_t products = 0;    // a ProductLayout

  SearchWorkspace(const SearchTask& task, const KnnCudaPlan& plan) {
    const bool masked = task.scope.filter == FilterPath::mask;
    const bool listed = task.scope.filter == FilterPath::list;
    const int64_t norm_bytes = task.shape.metric == Metric::cosine ? 8 : 0;
    const int64_t query_bytes = saturating_multiply(task.shape.cols, size_of(task.shape.query_dtype));
    const int64_t piece = piece_rows(plan);
    queries = take(plan.query_batch, query_bytes);
    query_norms = take(plan.query_batch, norm_bytes);
    const int64_t row_bytes = saturating_multiply(task.shape.cols, size_of(task.shape.base_dtype));
    rows = take(rows_stay(task) ? 0 : piece, row_bytes);
    rows_ahead = take(rows_come_ahead(task, plan) ? piece : 0, row_bytes);
    const int64_t new_norms = task.scope.prepared && !listed ? 0 : piece;
    row_norms = take(masked ? std::max(new_norms, plan.row_tile) : new_norms, norm_bytes);
    list = take(listed ? piece : masked ? plan.row_tile : 0, 4);
    const int64_t filtered_rows = masked ? task.scope.rows : listed ? task.shape.rows : 0;
    kept = take(KeptRows::words_for(filtered_rows), 8);
    ranks = take(KeptRows::ranks_for(filtered_rows), 4);
    keys = take(task.keys_in_place() ? 0 : plan.query_tile, saturating_multiply(plan.row_tile, 4));
    status = take(1, sizeof(SearchStatus));
    if (plan.products()) take_products(task, plan);
  }

 private:
  void take_products(const SearchTask& task, const KnnCudaPlan& plan) {
    const ProductPlan& product = plan.product;
    const ProductShape shape = product_shape(task, plan);
    const int64_t new_operands = product.operands_ready ? 0 : product.rows;
    const int64_t new_terms = task.scope.filter == FilterPath::mask ? product.rows : new_operands;
    base_operands = take(operand_tiles(new_operands), saturating_multiply(shape.chunks(), kTileChunkBytes));
    base_terms = take(operand_tiles(new_terms) * kOperandTile, 4);
    centre = take(task.shape.cols, 4);
    base_facts = take(1, sizeof(BaseFacts));
    products = take(1, ProductLayout(shape).bytes);
  }
};

}  // namespace kith
