// Exact search with products on the matrix units: one batch of queries against one piece of a base.
//
//   1. operands of the queries (and of the base, unless it was prepared)
//   2. the product, of which the minima of groups of rows are written
//   3. the k-th smallest minimum, with its error bound, is a threshold (kernels/matrix/candidate_window.hpp)
//   4. small k: all rows of the groups below it are candidates; else a second product collects the rows below it
//   5. canonical keys of the candidates, sorted
// Few rows and many queries go the coarse path (kernels/rerank/coarse_knn_cuda.hpp), with steps of its own from 2 on.
// Queries whose window has too many candidates fail, and are tried again with a second product and much room; what
// fails then, or has a window that is not sure, is left to the direct engine.
#pragma once

#include "exact/product_step_cuda.hpp"
#include "kernels/matrix/knn_windows_cuda.hpp"
#include "kernels/select/select_cuda.hpp"

#include <cstdint>
#include <functional>

namespace kith {

class ProductSearch : public ProductStep {
 public:
  // With bytes(shape) of device memory.
  ProductSearch(const ProductShape& shape, std::byte* memory, const ProductCounts& counts, cudaStream_t stream)
      : ProductStep(shape, memory, counts, stream) {}

  // Writes queries x k sorted neighbours, but for the queries that fail; `first_query` is the number of the first.
  // Enqueues and returns.
  void search(const DeviceRowsView& queries, int64_t first_query, const ProductBase& base, uint64_t* neighbors) const;
  // Computes every key of some queries, at most query_tile, with the rows, and fills their lists.
  using DirectSearch = std::function<void(const DeviceRowsView& queries, const DeviceLists& lists)>;
  // The `count` queries that have failed in the search just before. Waits for the second try; enqueues what follows.
  // Returns how many were searched directly.
  int64_t search_failed(int64_t count, const DeviceRowsView& queries, const ProductBase& base, uint64_t* neighbors,
                        const DirectSearch& search_directly) const;

 private:
  void search_by(const GroupedProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                 uint64_t* neighbors) const;
  void search_by(const SecondProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                 uint64_t* neighbors) const;
  void search_by(const CoarseProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                 uint64_t* neighbors) const;
  void search_by(const RangeProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                 uint64_t* neighbors) const;
  KnnWindowTask find_minima(int rows_per_minimum, int64_t queries, const ProductBase& base) const;
  // The groups with the smallest minima, for the window to go by.
  void select_groups(int64_t count, KnnWindowTask& window) const;
  int64_t try_again(const DeviceRowsView& queries, const ProductBase& base) const;
};

}  // namespace kith
