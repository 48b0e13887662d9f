// What k-NN and range search with products have in common: operands of the queries, candidates below thresholds, and
// the queries that have failed, gathered for another try.
#pragma once

#include "exact/search_rows_cuda.hpp"
#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"
#include "kernels/rerank/rerank_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

class ProductStep {
 protected:
  // What it refers to must outlive it. There are no steps where the plan has no products.
  explicit ProductStep(const SearchRows& rows)
      : rows_(rows),
        task_(rows.task()),
        plan_(rows.plan()),
        layout_(rows.layout()),
        kind_(key_kind(task_.shape.metric)),
        stream_(rows.stream()) {}

  template <typename T>
  T* at(const Slot<T>& slot) const {
    return rows_.at(slot);
  }
  const ProductPlan& product() const { return *plan_.product; }
  FailedQueries failed() const { return {&rows_.status()->failed, at(layout_.failed)}; }
  FailedQueries left() const { return {&rows_.status()->left, at(layout_.left)}; }

  void round_queries(const DeviceRowsView& queries, int64_t first_query, bool check, const ProductBase& base) const;
  ProductOperands operands_of(int64_t queries, const ProductBase& base) const;
  RerankTask rerank_task(const DeviceRowsView& queries, const ProductBase& base) const;
  // Collects the rows below the thresholds and gives them to `rerank`, which will have room for so many.
  void collect(const ProductCandidates& candidates, int64_t room, const ProductBase& base, RerankTask& rerank) const;
  // Of the queries that have failed those from `first` on, with thresholds and limits; of those left after another try
  // all, without.
  DeviceRowsView gather_failed(const DeviceRowsView& queries, int64_t first, int64_t count) const;
  DeviceRowsView gather_left(const DeviceRowsView& queries, int64_t count) const;
  // Whether every key of so many queries is computed in half a millisecond: on Hopper, whose matrix units multiply
  // doubles too.
  bool are_quick_directly(int64_t queries, int64_t rows) const {
    constexpr int64_t kQuickSteps = int64_t{1} << 33;
    return product().engine == ProductEngine::wgmma && queries * rows <= kQuickSteps / task_.shape.cols;
  }
  // Whether that is less time than another try of failed queries takes, which many failures make unlikely to help.
  bool failed_are_quick_directly(int64_t queries, int64_t rows) const {
    constexpr int64_t kManyQueries = 64;
    return queries >= kManyQueries && are_quick_directly(queries, rows);
  }
  // Waits.
  uint32_t read(const uint32_t* count) const;

  const SearchRows& rows_;
  const SearchTask& task_;
  const KnnCudaPlan& plan_;
  const SearchWorkspace& layout_;
  const KeyKind kind_;
  const cudaStream_t stream_;
};

}  // namespace kith
