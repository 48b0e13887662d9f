// The steps that k-NN and range search with products share: making operands of the queries, collecting candidates below
// thresholds, and gathering failed queries for a retry.
#pragma once

#include "exact/search_rows_cuda.hpp"
#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"
#include "kernels/rerank/rerank_cuda.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

namespace kith {

class ProductStep {
 protected:
  // The arguments must outlive it. Unused if the plan has no products.
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
  // The list of failed queries; those of a batch whose first has number `first` add to it.
  FailedQueries failed(int64_t first = 0) const {
    return {&rows_.status()->failed, at(layout_.failed), static_cast<uint32_t>(first)};
  }
  FailedQueries left() const { return {&rows_.status()->left, at(layout_.left)}; }

  void round_queries(const DeviceRowsView& queries, int64_t first_query, bool check, const ProductBase& base) const;
  ProductOperands operands_of(int64_t queries, const ProductBase& base) const;
  ProductSchedule schedule(int64_t queries, const ProductBase& base) const;
  RerankTask rerank_task(const DeviceRowsView& queries, const ProductBase& base) const;
  // Collects the rows below the thresholds into `rerank`, which has room for `room` of them for each query.
  void collect(const ProductCandidates& candidates, int64_t room, const ProductBase& base, RerankTask& rerank) const;
  // Gathers failed queries, or others by number, from `first` on, with their thresholds and limits; after a retry,
  // those that failed again, without.
  DeviceRowsView gather_failed(const DeviceRowsView& queries, int64_t first, int64_t count) const {
    return gather(failed(), queries, first, count);
  }
  DeviceRowsView gather(const FailedQueries& numbers, const DeviceRowsView& queries, int64_t first,
                        int64_t count) const;
  DeviceRowsView gather_left(const DeviceRowsView& queries, int64_t count) const;
  // Whether every key of so many queries is computed in half a millisecond: on Hopper, whose matrix units multiply
  // doubles too.
  bool are_quick_directly(int64_t queries, int64_t rows) const {
    constexpr double kQuickSteps = 0x1p33;
    return product().engine == ProductEngine::wgmma && direct_steps(queries, rows) <= kQuickSteps;
  }
  // The cost of a direct search, in multiplications. Writing a key and selecting from the keys costs as much as some
  // columns.
  double direct_steps(int64_t queries, int64_t rows) const {
    constexpr int64_t kLeastCols = 64;
    return static_cast<double>(queries) * static_cast<double>(rows) *
           static_cast<double>(std::max(task_.shape.cols, kLeastCols));
  }
  // Whether that is faster than a retry of failed queries, which is unlikely to help if many failed.
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
