// What k-NN and range search with products have in common: operands of the queries, candidates below thresholds, and
// the queries that have failed, gathered for another try. It knows shapes, memory and a stream, no search.
#pragma once

#include "exact/product_base_cuda.hpp"
#include "exact/product_layout_cuda.hpp"
#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"
#include "kernels/rerank/rerank_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// On the device, for the host to look at.
struct ProductCounts {
  uint32_t* bad_query = nullptr;  // lowered to the first that is not finite
  uint32_t* failed = nullptr;     // queries of a batch that products are not sure of
  uint32_t* left = nullptr;       // of those, what a second try leaves to the direct engine
};

class ProductStep {
 public:
  // Of device memory.
  static int64_t bytes(const ProductShape& shape) { return ProductLayout(shape).bytes; }

 protected:
  ProductStep(const ProductShape& shape, std::byte* memory, const ProductCounts& counts, cudaStream_t stream)
      : shape_(shape), layout_(shape), chunks_(shape.chunks()), stream_(stream), memory_(memory), counts_(counts) {}

  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(memory_);
  }
  FailedQueries failed() const { return {counts_.failed, at(layout_.failed)}; }
  FailedQueries left() const { return {counts_.left, at(layout_.left)}; }

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
    return shape_.product.engine == ProductEngine::wgmma && queries * rows <= kQuickSteps / shape_.cols;
  }
  // Whether that is less time than another try of failed queries takes, which many failures make unlikely to help.
  bool failed_are_quick_directly(int64_t queries, int64_t rows) const {
    constexpr int64_t kManyQueries = 64;
    return queries >= kManyQueries && are_quick_directly(queries, rows);
  }
  // Waits.
  uint32_t read(const uint32_t* count) const;

  const ProductShape shape_;
  const ProductLayout layout_;
  const int64_t chunks_;
  const cudaStream_t stream_;

 private:
  std::byte* const memory_;
  const ProductCounts counts_;
};

}  // namespace kith
