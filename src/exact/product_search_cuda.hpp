// Exact search with products on the matrix units: one batch of queries against one piece of a base.
//
//   1. operands of the queries (and of the base, unless it was prepared)
//   2. the product, of which the minima of groups of rows are written
//   3. the k-th smallest minimum, with its error bound, is a threshold (kernels/matrix/candidate_window.hpp)
//   4. small k: all rows of the groups below it are candidates; else a second product collects the rows below it
//   5. canonical keys of the candidates, sorted
// Few rows and many queries go the coarse path (coarse_plan_cuda.hpp), which has steps of its own from 2 on.
// Queries whose window has too many candidates fail, and are tried again with a second product and much room; what
// fails then, or has a window that is not sure, is left to the direct engine.
#pragma once

#include "exact/knn_workspace_cuda.hpp"
#include "exact/product_step_cuda.hpp"
#include "kernels/select/select_cuda.hpp"

#include <cstdint>

namespace kith {

class ProductSearch : private ProductStep {
 public:
  // What is referred to must outlive it.
  ProductSearch(const SearchTask& task, const KnnCudaPlan& plan, const KnnWorkspace& layout, const SearchRows& rows)
      : ProductStep(task, plan, layout, rows), layout_(layout) {}

  // Writes queries x k sorted neighbours, but for the queries that fail; lowers the status' bad_query, where it is
  // looked for, to the first query that is not finite, counted from first_query. Enqueues and returns.
  void search(const DeviceRowsView& queries, int64_t first_query, const ProductBase& base, uint64_t* neighbors) const;
  // The `count` queries that have failed in the search just before. Waits for the second try; enqueues the rest.
  // Returns how many were searched directly.
  int64_t search_failed(int64_t count, const DeviceRowsView& queries, const ProductBase& base,
                        uint64_t* neighbors) const;

 private:
  void search_coarse(const DeviceRowsView& queries, int64_t first_query, const ProductBase& base,
                     uint64_t* neighbors) const;
  void select_groups(int64_t queries, int64_t groups) const;
  int64_t try_again(const DeviceRowsView& queries, const ProductBase& base) const;
  void search_directly(const DeviceRowsView& queries, const ProductBase& base, const DeviceLists& lists) const;

  const KnnWorkspace& layout_;
};

}  // namespace kith
