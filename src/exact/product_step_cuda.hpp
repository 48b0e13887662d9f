// What k-NN and range search with products have in common: operands of the queries, candidates below thresholds, and
// the queries that have failed, gathered for another try.
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
  // The list of failed queries; those of a batch whose first has number `first` add to it.
  FailedQueries failed(int64_t first = 0) const {
    return {&rows_.status()->failed, at(layout_.failed), static_cast<uint32_t>(first)};
  }
  FailedQueries left() const { return {&rows_.status()->left, at(layout_.left)}; }

  void round_queries(const DeviceRowsView& queries, int64_t first_query, bool check, const ProductBase& base) const;
  ProductOperands operands_of(int64_t queries, const ProductBase& base) const;
  ProductSchedule schedule(int64_t queries, const ProductBase& base) const;
  RerankTask rerank_task(const DeviceRowsView& queries, const ProductBase& base) const;
  // Collects the rows below the thresholds and gives them to `rerank`, which will have room for so many.
  void collect(const ProductCandidates& candidates, int64_t room, const ProductBase& base, RerankTask& rerank) const;
  // Brings together the failed queries, or others by number, from `first` on, with thresholds and limits; all those
  // left after another try, without.
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
  // What searching queries among rows directly takes: multiplications, or as much time. A key is written and selected
  // from, which takes as long as some columns.
  double direct_steps(int64_t queries, int64_t rows) const {
    constexpr int64_t kLeastCols = 64;
    return static_cast<double>(queries) * static_cast<double>(rows) *
           static_cast<double>(std::max(task_.shape.cols, kLeastCols));
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
