// The device memory of products with a batch of queries: what a plan counts and the steps lay out by. It knows shapes,
// no search.
//
// Offsets are from the start of that memory; a part that is not needed has no bytes. "Batch" is product.queries; what
// has failed is tried again query_tile at a time.
#pragma once

#include <kith/dtype.hpp>

#include "core/byte_size.hpp"
#include "cuda/workspace_layout.hpp"
#include "exact/cuda_search_plan.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/operand_facts.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/rerank/coarse_plan.hpp"

#include <cstdint>

namespace kith {

// Group minima of a query and so many rows.
inline int64_t minima_of(const ProductPlan& product, int64_t rows) {
  return product.rows_per_part > 0 ? part_count(rows, product.rows_per_part)
                                   : group_count(rows, product.tiles_per_group);
}

struct ProductShape {
  KeyKind kind = KeyKind::l2;
  int64_t cols = 0;
  int64_t k = 0;  // 0: a range
  DType query_dtype = DType::f32;
  bool check_finite = true;  // of the queries
  int64_t query_tile = 0;
  ProductPlan product;

  int64_t chunks() const { return operand_chunks(cols, operand_value_bytes(product.operands)); }
};

struct ProductLayout : WorkspaceLayout {
  int64_t query_operands = 0;
  int64_t query_facts = 0;  // batch
  int64_t thresholds = 0;   // batch, f32
  int64_t key_limits = 0;   // batch, u32
  int64_t row_counts = 0;   // batch, u32
  int64_t candidates = 0;   // batch x capacity, u32
  int64_t failed = 0;       // batch, u32

  // Of queries that have failed: a second try, and those that it leaves to the direct engine.
  int64_t failed_rows = 0;        // query_tile x cols, as they came
  int64_t failed_norms = 0;       // double
  int64_t failed_thresholds = 0;  // f32
  int64_t failed_limits = 0;      // u32
  int64_t failed_counts = 0;      // u32
  int64_t left = 0;               // u32
  int64_t left_rows = 0;          // query_tile x cols, as they came
  int64_t left_norms = 0;         // double

  // Of the nearest: groups of rows are chosen first.
  int64_t minima = 0;             // batch x groups, f32
  int64_t coarse = 0;             // of the coarse path, in the place of minima and what follows from them
  int64_t kth = 0;                // batch, f32: each query's k-th smallest minimum, for a second product
  int64_t selected = 0;           // batch x selected, f32
  int64_t groups = 0;             // batch x selected, i32
  int64_t select = 0;             // for selection
  int64_t group_counts = 0;       // batch, i32
  int64_t failed_lists = 0;       // query_tile x k neighbours, u64
  int64_t failed_candidates = 0;  // query_tile x retry_capacity, u32
  int64_t left_lists = 0;         // query_tile x k neighbours, u64
  int64_t left_bounds = 0;        // query_tile keys, u32

  explicit ProductLayout(const ProductShape& shape) {
    const ProductPlan& product = shape.product;
    const int64_t batch = product.queries;
    const int64_t norm_bytes = shape.kind == KeyKind::cosine ? 8 : 0;
    const int64_t query_bytes = saturating_multiply(shape.cols, size_of(shape.query_dtype));
    query_operands = take(operand_tiles(batch), saturating_multiply(shape.chunks(), kTileChunkBytes));
    query_facts = take(batch, sizeof(QueryFacts));
    thresholds = take(batch, 4);
    key_limits = take(batch, 4);
    row_counts = take(batch, 4);
    candidates = take(batch, saturating_multiply(product.capacity, 4));
    failed = take(batch, 4);
    failed_rows = take(shape.query_tile, query_bytes);
    failed_norms = take(shape.query_tile, norm_bytes);
    failed_thresholds = take(shape.query_tile, 4);
    failed_limits = take(shape.query_tile, 4);
    failed_counts = take(shape.query_tile, 4);
    left = take(shape.query_tile, 4);
    left_rows = take(shape.query_tile, query_bytes);
    left_norms = take(shape.query_tile, norm_bytes);
    if (shape.k > 0) take_nearest(shape);
  }

 private:
  void take_nearest(const ProductShape& shape) {
    const ProductPlan& product = shape.product;
    const int64_t batch = product.queries;
    const int64_t list_bytes = saturating_multiply(shape.k, 8);
    if (product.rows_per_minimum > 0) {
      const int64_t list_room = product.row_tile_bytes > 0 ? product.room : 0;
      coarse = take(batch, coarse_bytes(1, product.rows, product.rows_per_minimum, list_room));
    } else {
      minima = take(batch, saturating_multiply(minima_of(product, product.rows), 4));
    }
    kth = take(batch, 4);
    selected = take(batch, saturating_multiply(product.selected, 4));
    groups = take(batch, saturating_multiply(product.selected, 4));
    select = take(1, product.select_bytes);
    group_counts = take(batch, 4);
    failed_lists = take(shape.query_tile, list_bytes);
    failed_candidates = take(shape.query_tile, saturating_multiply(product.retry_capacity, 4));
    left_lists = take(shape.query_tile, list_bytes);
    left_bounds = take(shape.query_tile, 4);
  }
};

}  // namespace kith
