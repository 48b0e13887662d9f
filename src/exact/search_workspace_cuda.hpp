// Where a search on a GPU keeps what k-NN and range search have in common, in the one block of device memory it takes:
// the plan counts these bytes and the backends lay out by them, so what is used is what was planned.
//
// A part that a search does not need has no bytes.
#pragma once

#include "core/byte_size.hpp"
#include "core/host_array.hpp"
#include "cuda/workspace_layout.hpp"
#include "exact/cuda_search_plan.hpp"
#include "exact/product_layout_cuda.hpp"
#include "exact/search_task.hpp"
#include "kernels/matrix/operand_facts.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/rerank/rerank_task.hpp"
#include "kernels/select/select_plan.hpp"
#include "rows/kept_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kith {

// The memory of the direct engine's selection. Pure arithmetic, for plans too.

// The most that a tile has.
struct TileSelectShape {
  int64_t queries = 0;
  int64_t rows = 0;
  int64_t k = 0;  // 0: lists are kept instead
  int multiprocessors = 0;

  bool suits() const { return k > 0 && k <= kFilterLargestK; }
};

struct TileSelectLayout : WorkspaceLayout {
  Slot<float> keys;        // queries x k
  Slot<int32_t> columns;   // queries x k
  Slot<uint64_t> found;    // queries x k neighbours
  Slot<std::byte> select;  // for selection

  explicit TileSelectLayout(const TileSelectShape& shape) {
    if (!shape.suits()) return;
    keys = take<float>(shape.queries, shape.k);
    columns = take<int32_t>(shape.queries, shape.k);
    found = take<uint64_t>(shape.queries, shape.k);
    // Tiles of fewer queries are cut into slices, no more than about two for each multiprocessor, and merged; short
    // ones are sorted in memory.
    const int64_t whole = plan_select({shape.queries, shape.rows, shape.k}, shape.multiprocessors).workspace_bytes;
    const int64_t cut = int64_t{4} * shape.multiprocessors;
    const int64_t sorted = shape.k > kRegistersLongestRow ? shape.queries : 0;
    select = take<std::byte>(whole + (cut + sorted) * array_bytes<uint64_t>(shape.k));
  }
};

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

// The device memory of a k-NN search: beside what every search has (search_workspace_cuda.hpp) its lists.

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

// The device memory of a range search: beside what every search has (search_workspace_cuda.hpp) the rows found, until
// they are brought to the host.
struct RangeWorkspace : SearchWorkspace {
  Slot<uint64_t> hits;    // plan.hits neighbours
  Slot<uint32_t> starts;  // of each query's: of a batch or a tile
  Slot<uint32_t> counts;
  // Where results stay on the device: of a tile of the direct engine.
  Slot<uint32_t> tile_counts;  // kRangeTileParts for each query
  Slot<int64_t> tile_starts;

  RangeWorkspace(const SearchTask& task, const KnnCudaPlan& plan) : SearchWorkspace(task, plan) {
    const int64_t queries_at_a_time = std::max(plan.product_queries(), plan.query_tile);
    hits = take<uint64_t>(plan.hits);
    starts = take<uint32_t>(queries_at_a_time);
    counts = take<uint32_t>(queries_at_a_time);
    const int64_t staying = task.wish.result_space.host_readable() ? 0 : queries_at_a_time;
    tile_counts = take<uint32_t>(staying, kRangeTileParts);
    tile_starts = take<int64_t>(staying);
  }
};

}  // namespace kith
