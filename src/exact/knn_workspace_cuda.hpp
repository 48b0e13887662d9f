// The device memory of a k-NN search: beside what every search has (search_workspace_cuda.hpp) its lists, and what
// chooses the groups of rows that are looked at.
#pragma once

#include "exact/search_workspace_cuda.hpp"

#include <cstdint>

namespace kith {

struct KnnWorkspace : SearchWorkspace {
  int64_t lists = 0;   // query_batch x k neighbours, u64
  int64_t bounds = 0;  // keys, u32: query_batch, or query_tile beside products

  // Of products.
  int64_t minima = 0;             // batch x groups, f32
  int64_t marks = 0;              // batch x words, u32: bits of candidates, on the coarse path
  int64_t kth = 0;                // batch, f32: each query's k-th smallest minimum, for a second product
  int64_t selected = 0;           // batch x selected, f32
  int64_t groups = 0;             // batch x selected, i32
  int64_t select = 0;             // for selection
  int64_t group_counts = 0;       // batch, i32
  int64_t found = 0;              // batch x k neighbours, u64
  int64_t failed_lists = 0;       // query_tile x k neighbours, u64
  int64_t failed_candidates = 0;  // query_tile x retry_capacity, u32
  int64_t left_lists = 0;         // query_tile x k neighbours, u64

  KnnWorkspace(const SearchTask& task, const KnnCudaPlan& plan) : SearchWorkspace(task, plan) {
    const bool products = plan.engine == CudaEngine::product;
    const int64_t list_bytes = saturating_multiply(task.scope.k, 8);
    lists = take(plan.query_batch, list_bytes);
    bounds = take(products ? plan.query_tile : plan.query_batch, 4);
    if (!products) return;
    const ProductPlan& product = plan.product;
    const int64_t batch = product.queries;
    const bool coarse = product.rows_per_minimum > 0;
    const int64_t groups_each = coarse ? part_count(product.rows, product.rows_per_minimum)
                                       : group_count(product.rows, product.tiles_per_group);
    minima = take(batch, saturating_multiply(groups_each, 4));
    marks = take(coarse ? batch : 0, saturating_multiply(mark_words(product.rows), 4));
    kth = take(batch, 4);
    selected = take(batch, saturating_multiply(product.selected, 4));
    groups = take(batch, saturating_multiply(product.selected, 4));
    select = take(1, product.select_bytes);
    group_counts = take(batch, 4);
    found = take(batch, list_bytes);
    failed_lists = take(plan.query_tile, list_bytes);
    failed_candidates = take(plan.query_tile, saturating_multiply(product.retry_capacity, 4));
    left_lists = take(plan.query_tile, list_bytes);
  }
};

}  // namespace kith
