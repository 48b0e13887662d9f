// Where a search on a GPU keeps what k-NN and range search have in common, in the one block of device memory it takes:
// the plan counts these bytes and the backends lay out by them, so what is used is what was planned.
//
// A part that a search does not need has no bytes.
#pragma once

#include "core/byte_size.hpp"
#include "core/host_array.hpp"
#include "cuda/workspace_layout.hpp"
#include "exact/cuda_search_plan.hpp"
#include "exact/search_task.hpp"
#include "kernels/matrix/operand_bounds.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/rerank/coarse_plan.hpp"
#include "kernels/rerank/few_nearest_plan.hpp"
#include "kernels/rerank/rerank_task.hpp"
#include "kernels/select/select_plan.hpp"
#include "rows/kept_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>

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

// Whether queries that fail are looked at when all batches are done: where all rows are there as one piece until then.
// The more of them there are, the more of them lie together (vicinities_cuda.hpp).
inline bool waits_for_failures(const SearchTask& task, const KnnCudaPlan& plan) {
  return plan.product && !task.within() && rows_stay(task) && task.rows <= plan.product->rows;
}

// Whether one launch finds the nearest rows of few queries, where all rows are there as one piece.
inline bool takes_few(const SearchTask& task, const KnnCudaPlan& plan) {
  constexpr int64_t kNarrow = 16;  // columns, for which four threads a row are too many
  return plan.few && !plan.product && task.request.what == Wanted::nearest && !task.request.given_keys &&
         rows_stay(task) && task.rows > 0 && task.rows <= plan.row_tile && plan.query_batch <= plan.query_tile &&
         task.shape.cols > kNarrow &&
         suits_few_nearest(key_kind(task.shape.metric), plan.query_batch, task.shape.cols, task.k);
}

// Whether a copy of the rows in bytes is looked at first, for one query, where a prepared base has one.
inline bool takes_screen(const SearchTask& task, const KnnCudaPlan& plan) {
  return plan.few && plan.product && plan.product->operands_ready && plan.product->operands == OperandType::half &&
         task.request.what == Wanted::nearest && task.filter == FilterPath::none && task.shape.queries == 1 &&
         task.rows > 0 && task.rows <= plan.product->rows &&
         suits_byte_screen(key_kind(task.shape.metric), task.shape.cols, task.k);
}

// How many chunks an operand of the product has.
inline int64_t operand_chunks(const SearchTask& task, const ProductPlan& product) {
  return operand_chunks(task.shape.cols, operand_value_bytes(product.operands));
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

  // What products read of a piece of product.rows rows.
  Slot<std::byte> base_operands;
  Slot<uint32_t> base_terms;  // f32 or i32, for each row of its tiles; where rows are masked, theirs
  Slot<float> centre;         // cols
  Slot<BaseBounds> base_bounds;

  // What products read and find for a batch of product.queries queries.
  Slot<std::byte> query_operands;
  Slot<QueryOperand> query_bounds;  // batch
  Slot<float> thresholds;        // batch, or all queries where they wait for each other's failures
  Slot<uint32_t> key_limits;     // likewise
  Slot<uint32_t> row_counts;     // batch
  Slot<uint32_t> candidates;     // batch x capacity
  Slot<uint32_t> failed;         // as many as thresholds

  // Queries that have failed are tried again query_tile at a time; those that fail again are left to the direct engine.
  Slot<std::byte> failed_rows;  // query_tile x cols, as they came
  Slot<double> failed_norms;
  Slot<float> failed_thresholds;
  Slot<uint32_t> failed_limits;
  Slot<uint32_t> failed_counts;
  Slot<uint32_t> left;
  Slot<std::byte> left_rows;  // query_tile x cols, as they came
  Slot<double> left_norms;

  // A search for the nearest chooses groups of rows first.
  Slot<float> minima;                // batch x groups
  Slot<std::byte> coarse;            // of the coarse path, in the place of minima and what follows from them
  Slot<float> kth;                   // batch: each query's k-th smallest minimum, for a second product
  Slot<float> selected;              // batch x selected
  Slot<int32_t> groups;              // batch x selected
  Slot<std::byte> select_groups;     // for selection
  Slot<int32_t> group_counts;        // batch
  Slot<uint64_t> failed_lists;       // query_tile x k neighbours
  Slot<uint32_t> failed_candidates;  // query_tile x retry.capacity
  Slot<uint64_t> left_lists;         // query_tile x k neighbours
  Slot<uint32_t> left_bounds;        // query_tile keys

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
    if (plan.product) take_products(task, plan);
  }

 private:
  void take_products(const SearchTask& task, const KnnCudaPlan& plan) {
    const ProductPlan& product = *plan.product;
    const int64_t tile_bytes = saturating_multiply(operand_chunks(task, product), kTileChunkBytes);
    const int64_t new_operands = product.operands_ready ? 0 : product.rows;
    const int64_t new_terms = task.filter == FilterPath::mask ? product.rows : new_operands;
    base_operands = take<std::byte>(operand_tiles(new_operands), tile_bytes);
    base_terms = take<uint32_t>(operand_tiles(new_terms) * kOperandTile);
    centre = take<float>(task.shape.cols);
    base_bounds = take<BaseBounds>(1);

    const int64_t batch = product.queries;
    const int64_t norms = task.shape.metric == Metric::cosine ? plan.query_tile : 0;
    query_operands = take<std::byte>(operand_tiles(batch), tile_bytes);
    query_bounds = take<QueryOperand>(batch);
    const int64_t together = waits_for_failures(task, plan) ? plan.query_batch : batch;
    thresholds = take<float>(together);
    key_limits = take<uint32_t>(together);
    row_counts = take<uint32_t>(batch);
    candidates = take<uint32_t>(batch, std::visit(Capacity(), product.way));
    failed = take<uint32_t>(together);
    failed_rows = take_rows(plan.query_tile, task.shape.cols, task.shape.query_dtype);
    failed_norms = take<double>(norms);
    failed_thresholds = take<float>(plan.query_tile);
    failed_limits = take<uint32_t>(plan.query_tile);
    failed_counts = take<uint32_t>(plan.query_tile);
    left = take<uint32_t>(plan.query_tile);
    left_rows = take_rows(plan.query_tile, task.shape.cols, task.shape.query_dtype);
    left_norms = take<double>(norms);
    if (task.within()) return;
    const SelectedGroups chosen = std::visit([&](const auto& way) { return take_minima(product, way); }, product.way);
    kth = take<float>(batch);
    selected = take<float>(batch, chosen.count);
    groups = take<int32_t>(batch, chosen.count);
    select_groups = take<std::byte>(chosen.bytes);
    group_counts = take<int32_t>(batch);
    failed_lists = take<uint64_t>(plan.query_tile, task.k);
    failed_candidates = take<uint32_t>(plan.query_tile, product.retry.capacity);
    left_lists = take<uint64_t>(plan.query_tile, task.k);
    left_bounds = take<uint32_t>(plan.query_tile);
  }

  struct Capacity {
    int64_t operator()(const GroupedProduct&) const { return 0; }
    int64_t operator()(const CoarseProduct&) const { return 0; }
    int64_t operator()(const StreamedProduct&) const { return 0; }
    int64_t operator()(const SecondProduct& way) const { return way.candidates.capacity; }
    int64_t operator()(const RangeProduct& way) const { return way.candidates.capacity; }
  };

  SelectedGroups take_minima(const ProductPlan& product, const GroupedProduct& way) {
    minima = take<float>(product.queries, part_count(product.rows, way.rows_per_minimum));
    return way.selected;
  }
  SelectedGroups take_minima(const ProductPlan& product, const SecondProduct& way) {
    minima = take<float>(product.queries, part_count(product.rows, way.rows_per_minimum));
    return way.selected.value_or(SelectedGroups());
  }
  SelectedGroups take_minima(const ProductPlan& product, const CoarseProduct& way) {
    const int64_t list_room = way.row_tile_bytes ? way.room : 0;
    coarse = take<std::byte>(product.queries, coarse_bytes(1, product.rows, way.rows_per_minimum, list_room));
    return {};
  }
  SelectedGroups take_minima(const ProductPlan& product, const StreamedProduct& way) {
    minima = take<float>(product.queries, product.rows);
    return way.selected;
  }
  SelectedGroups take_minima(const ProductPlan&, const RangeProduct&) { return {}; }
};

// Whether the direct engine, which takes what the product engine leaves, selects the nearest of a tile at once; else it
// keeps lists.
inline bool selects_tiles(const SearchTask& task, const KnnCudaPlan& plan) {
  return plan.selects_tiles && task.k > 0 && task.k <= kFilterLargestK;
}

// The device memory of a k-NN search: beside what every search has its lists.
struct KnnWorkspace : SearchWorkspace {
  Slot<uint64_t> lists;   // query_batch x k neighbours
  Slot<uint32_t> bounds;  // of the direct engine: query_batch keys
  Slot<uint64_t> found;   // of products: the neighbours in one piece, batch x k
  Slot<uint32_t> minima_of_few;  // few_nearest_minima

  // What a search by the copy in bytes writes: a lower bound for each row, and screened_minima.
  Slot<float> lowers;
  Slot<float> screen_minima;

  // Where tiles are selected from: query_tile x k each, and what selection takes.
  Slot<float> tile_keys;
  Slot<int32_t> tile_columns;
  Slot<uint64_t> tile_found;
  Slot<std::byte> select_tile;

  KnnWorkspace(const SearchTask& task, const KnnCudaPlan& plan) : SearchWorkspace(task, plan) {
    lists = take<uint64_t>(plan.query_batch, task.k);
    bounds = take<uint32_t>(plan.product ? 0 : plan.query_batch);
    found = take<uint64_t>(plan.product_queries(), task.k);
    minima_of_few = take<uint32_t>(
        takes_few(task, plan) ? few_nearest_minima(plan.query_batch, task.rows, plan.multiprocessors) : 0);
    const int64_t screened = takes_screen(task, plan) ? task.rows : 0;
    lowers = take<float>(screened);
    screen_minima = take<float>(screened > 0 ? screened_minima(screened, plan.multiprocessors) : 0);
    if (!selects_tiles(task, plan)) return;
    tile_keys = take<float>(plan.query_tile, task.k);
    tile_columns = take<int32_t>(plan.query_tile, task.k);
    tile_found = take<uint64_t>(plan.query_tile, task.k);
    // Tiles of fewer queries are cut into slices, no more than about two for each multiprocessor, and merged; short
    // ones are sorted in memory.
    const int64_t whole = plan_select({plan.query_tile, plan.row_tile, task.k}, plan.multiprocessors).workspace_bytes;
    const int64_t cut = int64_t{4} * plan.multiprocessors;
    const int64_t sorted = task.k > kRegistersLongestRow ? plan.query_tile : 0;
    select_tile = take<std::byte>(whole + (cut + sorted) * array_bytes<uint64_t>(task.k));
  }
};

// The device memory of a range search: beside what every search has the rows found, until
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
    const int64_t staying = task.request.result_space.host_readable() ? 0 : queries_at_a_time;
    tile_counts = take<uint32_t>(staying, kRangeTileParts);
    tile_starts = take<int64_t>(staying);
  }
};

}  // namespace kith
