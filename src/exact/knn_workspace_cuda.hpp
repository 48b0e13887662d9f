// Where an exact search keeps its things in the one block of device memory it takes: the plan counts these bytes and
// the backend lays out by them, so what is used is what was planned.
#pragma once

#include "core/byte_size.hpp"
#include "exact/knn_plan.hpp"
#include "kernels/product/operand_facts.hpp"
#include "kernels/product/operand_layout.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// What the host looks at when a batch is done.
struct KnnStatus {
  uint32_t bad_query = 0;  // the first that is not finite
  uint32_t bad_row = 0;
  uint32_t failed = 0;  // queries of a batch that products are not sure of
  uint32_t left = 0;    // of those, what a second try leaves to the direct engine
};

// Offsets from the start of the block, each aligned; a part that a search does not need has no bytes.
struct KnnWorkspace {
  int64_t queries = 0;      // query_batch x cols, as they came
  int64_t query_norms = 0;  // inverse norms, double
  int64_t lists = 0;        // query_batch x k neighbours, u64
  int64_t bounds = 0;       // keys, u32: query_batch, or query_tile beside products
  int64_t rows = 0;         // row_tile, or a piece for products, x cols, as they came
  int64_t row_norms = 0;    // inverse norms, double
  int64_t keys = 0;         // query_tile x row_tile, u32
  int64_t status = 0;       // a KnnStatus

  // Of products. "Batch" is product.queries, "piece" product.rows.
  int64_t base_operands = 0;   // of a piece
  int64_t base_terms = 0;      // 4 bytes for each row of its tiles
  int64_t centre = 0;          // cols, f32
  int64_t base_facts = 0;      // one
  int64_t query_operands = 0;  // of a batch
  int64_t query_facts = 0;     // batch
  int64_t minima = 0;          // batch x groups, f32
  int64_t selected = 0;        // batch x selected, f32
  int64_t groups = 0;          // batch x selected, i32
  int64_t select = 0;          // for selection
  int64_t thresholds = 0;      // batch, f32
  int64_t key_limits = 0;      // batch, u32
  int64_t group_counts = 0;    // batch, i32
  int64_t row_counts = 0;      // batch, u32
  int64_t candidates = 0;      // batch x capacity, u32
  int64_t found = 0;           // batch x k neighbours, u64
  int64_t failed = 0;          // batch, u32

  // Of queries that have failed, query_tile at a time: a second try, and what it leaves.
  int64_t failed_rows = 0;        // query_tile x cols, as they came
  int64_t failed_norms = 0;       // double
  int64_t failed_thresholds = 0;  // f32
  int64_t failed_limits = 0;      // u32
  int64_t failed_lists = 0;       // query_tile x k neighbours, u64
  int64_t failed_counts = 0;      // u32
  int64_t failed_candidates = 0;  // query_tile x retry_capacity, u32
  int64_t left = 0;               // u32
  int64_t left_rows = 0;          // query_tile x cols, as they came
  int64_t left_norms = 0;         // double
  int64_t left_lists = 0;         // query_tile x k neighbours, u64

  int64_t bytes = 0;  // INT64_MAX where the sum cannot be counted

  KnnWorkspace(const KnnProblem& problem, const KnnPlan& plan) {
    const bool products = plan.cuda_engine == CudaEngine::product;
    const int64_t norm_bytes = problem.metric == Metric::cosine ? 8 : 0;
    const int64_t query_bytes = saturating_multiply(problem.cols, size_of(problem.query_dtype));
    const int64_t list_bytes = saturating_multiply(problem.k, 8);
    queries = take(plan.query_batch, query_bytes);
    query_norms = take(plan.query_batch, norm_bytes);
    lists = take(plan.query_batch, list_bytes);
    bounds = take(products ? plan.query_tile : plan.query_batch, 4);
    const int64_t staged_rows = problem.base_prepared ? 0 : products ? plan.product.rows : plan.row_tile;
    rows = take(staged_rows, saturating_multiply(problem.cols, size_of(problem.base_dtype)));
    row_norms = take(staged_rows, norm_bytes);
    keys = take(plan.query_tile, saturating_multiply(plan.row_tile, 4));
    status = take(1, sizeof(KnnStatus));
    if (products) take_products(problem, plan, query_bytes, list_bytes, norm_bytes);
  }

 private:
  void take_products(const KnnProblem& problem, const KnnPlan& plan, int64_t query_bytes, int64_t list_bytes,
                     int64_t norm_bytes) {
    const ProductPlan& product = plan.product;
    const int64_t chunks = operand_chunks(problem.cols, operand_value_bytes(product.operands));
    const int64_t batch = product.queries;
    const int64_t staged = product.operands_ready ? 0 : product.rows;
    base_operands = take(operand_tiles(staged), saturating_multiply(chunks, kBlockBytes));
    base_terms = take(operand_tiles(staged) * kOperandTile, 4);
    centre = take(problem.cols, 4);
    base_facts = take(1, sizeof(BaseFacts));
    query_operands = take(operand_tiles(batch), saturating_multiply(chunks, kBlockBytes));
    query_facts = take(batch, sizeof(QueryFacts));
    minima = take(batch, saturating_multiply(group_count(product.rows, product.tiles_per_group), 4));
    selected = take(batch, saturating_multiply(product.selected, 4));
    groups = take(batch, saturating_multiply(product.selected, 4));
    select = take(1, product.select_bytes);
    thresholds = take(batch, 4);
    key_limits = take(batch, 4);
    group_counts = take(batch, 4);
    row_counts = take(batch, 4);
    candidates = take(batch, saturating_multiply(product.capacity, 4));
    found = take(batch, list_bytes);
    failed = take(batch, 4);
    failed_rows = take(plan.query_tile, query_bytes);
    failed_norms = take(plan.query_tile, norm_bytes);
    failed_thresholds = take(plan.query_tile, 4);
    failed_limits = take(plan.query_tile, 4);
    failed_lists = take(plan.query_tile, list_bytes);
    failed_counts = take(plan.query_tile, 4);
    failed_candidates = take(plan.query_tile, saturating_multiply(product.retry_capacity, 4));
    left = take(plan.query_tile, 4);
    left_rows = take(plan.query_tile, query_bytes);
    left_norms = take(plan.query_tile, norm_bytes);
    left_lists = take(plan.query_tile, list_bytes);
  }

  int64_t take(int64_t count, int64_t bytes_each) {
    constexpr int64_t kAlignment = 256;
    const int64_t start = bytes;
    const int64_t size = saturating_multiply(count, bytes_each);
    bytes =
        size > INT64_MAX - kAlignment - start ? INT64_MAX : (start + size + kAlignment - 1) / kAlignment * kAlignment;
    return start;
  }
};

}  // namespace kith
