// Exact search with products on the matrix units: one batch of queries against one piece of a base.
//
//   1. operands of the queries (and of the base, unless it was prepared)
//   2. the product, of which the minima of groups of rows are written
//   3. selection: the k-th smallest minimum, with its error bound, is a threshold
//   (kernels/product/candidate_window.hpp)
//   4. small k: all rows of the groups below it are candidates; else a second product collects the rows below it
//   5. canonical keys of the candidates, sorted
// Queries whose window has too many candidates fail, and are tried again with a second product and much room; what
// fails then, or has a window that is not sure, is left to the direct engine.
#pragma once

#include "exact/knn_workspace_cuda.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/product/operands_cuda.hpp"
#include "kernels/product/product_cuda.hpp"
#include "kernels/product/rerank_cuda.hpp"
#include "kernels/select/select_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// The operands of a base on the device.
struct OperandsView {
  std::byte* operands = nullptr;
  std::byte* terms = nullptr;  // 4 bytes a row
  float* centre = nullptr;
  BaseFacts* facts = nullptr;

  // From row `first`, a multiple of kQueryTile, on.
  OperandsView from(int64_t first, int64_t chunks) const {
    return {operands + first / kOperandTile * chunks * kBlockBytes, terms + first * 4, centre, facts};
  }
};

struct ProductBase {
  DeviceRowsView rows;
  OperandsView operands;
  int64_t first_row = 0;
};

// Rounds rows to operands of this type; `bad_row`, where not null, gets the first row that is not finite.
void make_operands(Metric metric, OperandType type, const DeviceRowsView& rows, int64_t cols, const OperandsView& to,
                   uint32_t* bad_row, cudaStream_t stream);

class ProductSearch {
 public:
  ProductSearch(const KnnProblem& problem, const KnnPlan& plan, const KnnWorkspace& layout, std::byte* workspace,
                cudaStream_t stream);

  // Room in the workspace for a piece's operands.
  OperandsView staged_operands() const;
  // Writes queries x k sorted neighbours, but for the queries that fail; lowers the status' bad_query, where it is
  // looked for, to the first query that is not finite, counted from first_query. Enqueues and returns.
  void search(const DeviceRowsView& queries, int64_t first_query, const ProductBase& base, uint64_t* neighbors) const;
  // The `count` queries that have failed in the search just before. Waits for the second try; enqueues the rest.
  // Returns how many were searched directly.
  int64_t search_failed(int64_t count, const DeviceRowsView& queries, const ProductBase& base,
                        uint64_t* neighbors) const;

 private:
  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(workspace_ + offset);
  }
  KnnStatus* status() const { return at<KnnStatus>(layout_.status); }
  FailedQueries failed() const { return {&status()->failed, at<uint32_t>(layout_.failed)}; }
  FailedQueries left() const { return {&status()->left, at<uint32_t>(layout_.left)}; }

  void round_queries(const DeviceRowsView& queries, int64_t first_query, bool check, const ProductBase& base) const;
  ProductOperands operands_of(int64_t queries, const ProductBase& base) const;
  void select_groups(int64_t queries, int64_t groups) const;
  RerankTask rerank_task(const DeviceRowsView& queries, const ProductBase& base) const;
  int64_t try_again(const DeviceRowsView& queries, const ProductBase& base) const;
  void search_directly(const DeviceRowsView& queries, const ProductBase& base, const DeviceLists& lists) const;

  const KnnProblem& problem_;
  const KnnPlan& plan_;
  const KnnWorkspace& layout_;
  std::byte* workspace_;
  cudaStream_t stream_;
  KeyKind kind_;
  int64_t chunks_;
};

}  // namespace kith
