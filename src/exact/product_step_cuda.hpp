// What k-NN and range search with products have in common: operands of the queries, candidates below thresholds, and
// the queries that have failed, gathered for another try.
#pragma once

#include "exact/search_rows_cuda.hpp"
#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"
#include "kernels/rerank/rerank_cuda.hpp"

#include <cstdint>

namespace kith {

class ProductStep {
 protected:
  ProductStep(const SearchTask& task, const KnnCudaPlan& plan, const SearchWorkspace& layout, const SearchRows& rows)
      : task_(task),
        plan_(plan),
        step_layout_(layout),
        rows_(rows),
        stream_(rows.stream()),
        kind_(key_kind(task.shape.metric)),
        chunks_(operand_chunks(task.shape.cols, operand_value_bytes(plan.product.operands))) {}

  template <typename T>
  T* at(int64_t offset) const {
    return rows_.at<T>(offset);
  }
  SearchStatus* status() const { return rows_.status(); }
  FailedQueries failed() const { return {&status()->failed, at<uint32_t>(step_layout_.failed)}; }
  FailedQueries left() const { return {&status()->left, at<uint32_t>(step_layout_.left)}; }

  void round_queries(const DeviceRowsView& queries, int64_t first_query, bool check, const ProductBase& base) const;
  ProductOperands operands_of(int64_t queries, const ProductBase& base) const;
  RerankTask rerank_task(const DeviceRowsView& queries, const ProductBase& base) const;
  // Collects the rows below the thresholds and gives them to `rerank`, which will have room for so many.
  void collect(const ProductCandidates& candidates, int64_t room, const ProductBase& base, RerankTask& rerank) const;
  // Of the queries that have failed those from `first` on, with thresholds and limits; of those left after another try
  // all, without.
  DeviceRowsView gather_failed(const DeviceRowsView& queries, int64_t first, int64_t count) const;
  DeviceRowsView gather_left(const DeviceRowsView& queries, int64_t count) const;
  // Waits.
  uint32_t read(const uint32_t* count) const;

  const SearchTask& task_;
  const KnnCudaPlan& plan_;
  const SearchWorkspace& step_layout_;
  const SearchRows& rows_;
  cudaStream_t stream_;
  KeyKind kind_;
  int64_t chunks_;
};

}  // namespace kith
