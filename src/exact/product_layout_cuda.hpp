// The device memory of products with a batch of queries: what a plan counts and the steps lay out by. It knows shapes,
// no search.
//
// A part that is not needed has no bytes. "Batch" is product.queries; what has failed is tried again query_tile at a
// time.
#pragma once

#include <kith/dtype.hpp>

#include "core/byte_size.hpp"
#include "cuda/workspace_layout.hpp"
#include "exact/cuda_search_plan.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/operand_facts.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/rerank/coarse_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <variant>

namespace kith {

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
  Slot<std::byte> query_operands;
  Slot<QueryFacts> query_facts;   // batch
  Slot<float> thresholds;         // batch
  Slot<uint32_t> key_limits;      // batch
  Slot<uint32_t> row_counts;      // batch
  Slot<uint32_t> candidates;      // batch x capacity
  Slot<uint32_t> failed;          // batch

  // Of queries that have failed: a second try, and those that it leaves to the direct engine.
  Slot<std::byte> failed_rows;    // query_tile x cols, as they came
  Slot<double> failed_norms;
  Slot<float> failed_thresholds;
  Slot<uint32_t> failed_limits;
  Slot<uint32_t> failed_counts;
  Slot<uint32_t> left;
  Slot<std::byte> left_rows;      // query_tile x cols, as they came
  Slot<double> left_norms;

  // Of the nearest: groups of rows are chosen first.
  Slot<float> minima;                // batch x groups
  Slot<std::byte> coarse;            // of the coarse path, in the place of minima and what follows from them
  Slot<float> kth;                   // batch: each query's k-th smallest minimum, for a second product
  Slot<float> selected;              // batch x selected
  Slot<int32_t> groups;              // batch x selected
  Slot<std::byte> select;            // for selection
  Slot<int32_t> group_counts;        // batch
  Slot<uint64_t> failed_lists;       // query_tile x k neighbours
  Slot<uint32_t> failed_candidates;  // query_tile x retry.capacity
  Slot<uint64_t> left_lists;         // query_tile x k neighbours
  Slot<uint32_t> left_bounds;        // query_tile keys

  explicit ProductLayout(const ProductShape& shape) {
    const ProductPlan& product = shape.product;
    const int64_t batch = product.queries;
    const int64_t norms = shape.kind == KeyKind::cosine ? shape.query_tile : 0;
    query_operands = take<std::byte>(operand_tiles(batch), saturating_multiply(shape.chunks(), kTileChunkBytes));
    query_facts = take<QueryFacts>(batch);
    thresholds = take<float>(batch);
    key_limits = take<uint32_t>(batch);
    row_counts = take<uint32_t>(batch);
    candidates = take<uint32_t>(batch, std::visit(Capacity(), product.way));
    failed = take<uint32_t>(batch);
    failed_rows = take_rows(shape.query_tile, shape.cols, shape.query_dtype);
    failed_norms = take<double>(norms);
    failed_thresholds = take<float>(shape.query_tile);
    failed_limits = take<uint32_t>(shape.query_tile);
    failed_counts = take<uint32_t>(shape.query_tile);
    left = take<uint32_t>(shape.query_tile);
    left_rows = take_rows(shape.query_tile, shape.cols, shape.query_dtype);
    left_norms = take<double>(norms);
    if (shape.k > 0) take_nearest(shape);
  }

 private:
  struct Capacity {
    int64_t operator()(const GroupedProduct&) const { return 0; }
    int64_t operator()(const CoarseProduct&) const { return 0; }
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
  SelectedGroups take_minima(const ProductPlan&, const RangeProduct&) { return {}; }

  void take_nearest(const ProductShape& shape) {
    const ProductPlan& product = shape.product;
    const int64_t batch = product.queries;
    const SelectedGroups chosen = std::visit([&](const auto& way) { return take_minima(product, way); }, product.way);
    kth = take<float>(batch);
    selected = take<float>(batch, chosen.count);
    groups = take<int32_t>(batch, chosen.count);
    select = take<std::byte>(chosen.bytes);
    group_counts = take<int32_t>(batch);
    failed_lists = take<uint64_t>(shape.query_tile, shape.k);
    failed_candidates = take<uint32_t>(shape.query_tile, product.retry.capacity);
    left_lists = take<uint64_t>(shape.query_tile, shape.k);
    left_bounds = take<uint32_t>(shape.query_tile);
  }
};

}  // namespace kith
