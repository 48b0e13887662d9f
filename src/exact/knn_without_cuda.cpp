// Stands in for knn_cuda.cpp in a build without CUDA.
#include "core/dispatch.hpp"
#include "exact/knn_backend.hpp"

namespace kith {

std::unique_ptr<KnnBackend> make_knn_cuda(const KnnProblem&, const KnnPlan&, const Resources&) { throw_no_cuda(); }

void write_nothing_cuda(Metric, const NeighborsView&, const Resources&) { throw_no_cuda(); }

std::shared_ptr<PreparedBase> prepare_base_cuda(int, const MatrixView&, const PrepareOptions&, const Resources&) {
  throw_no_cuda();
}

}  // namespace kith
