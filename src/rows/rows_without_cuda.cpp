// Replaces the functions that call CUDA in builds without it.
#include "core/dispatch.hpp"
#include "rows/rows_cuda.hpp"

namespace kith {

void gather_cuda(const MatrixView&, const std::vector<uint32_t>&, std::byte*, const Resources&) { throw_no_cuda(); }

void gather_floats_cuda(const MatrixView&, const std::vector<uint32_t>&, float*, const Resources&) { throw_no_cuda(); }

std::shared_ptr<const float> narrow_cuda(std::string_view, const MatrixView&, const double*, const Resources&) {
  throw_no_cuda();
}

bool is_exact_cuda(const MatrixView&, const double*, const Resources&) { throw_no_cuda(); }

}  // namespace kith
