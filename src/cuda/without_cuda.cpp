// What a build without CUDA says when asked for it.
#include <kith/device.hpp>
#include <kith/error.hpp>

#include "exact/knn_backend.hpp"

namespace kith {
namespace {

[[noreturn]] void refuse() { throw Unsupported("this build of Kith has no CUDA backend; use device cpu or auto"); }

}  // namespace

bool built_with_cuda() { return false; }
std::vector<DeviceInfo> cuda_devices() { return {}; }

std::unique_ptr<KnnBackend> make_knn_cuda(const KnnProblem&, const KnnPlan&, const Resources&) { refuse(); }
std::shared_ptr<PreparedBase> prepare_base_cuda(int, const MatrixView&, const PrepareOptions&, const Resources&) {
  refuse();
}

}  // namespace kith
