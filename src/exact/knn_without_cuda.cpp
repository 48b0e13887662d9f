// Replaces the GPU search in builds without CUDA.
#include "core/dispatch.hpp"
#include "exact/pairwise_cuda.hpp"
#include "exact/search_backend.hpp"

namespace kith {

std::unique_ptr<KnnBackend> make_knn_cuda(const SearchTask&, const KnnCudaPlan&, const KnnCudaExtras&,
                                          const Resources&) {
  throw_no_cuda();
}

std::unique_ptr<RangeBackend> make_range_cuda(const PlannedSearch&, float, const Resources&) { throw_no_cuda(); }

void write_range_cuda(const RangeView&, const RangeOnDevice&, int, const Resources&) { throw_no_cuda(); }

void write_nothing_cuda(Metric, const NeighborsView&, const Resources&) { throw_no_cuda(); }

std::shared_ptr<PreparedBase> prepare_base_cuda(int, const MatrixView&, const PrepareOptions&, const Resources&) {
  throw_no_cuda();
}

void pairwise_cuda(const SearchTask&, const PlannedKnn&, const MatrixView&, const MatrixView&, const MutableMatrixView&,
                   const PairwiseNames&) {
  throw_no_cuda();
}

}  // namespace kith
