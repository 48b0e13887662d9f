// Stubs for encoding and searching lists on a GPU, for builds without CUDA.
#include "core/dispatch.hpp"
#include "ivf/search/ivf_search.hpp"
#include "ivf/segment/code_rows_cuda.hpp"

namespace kith {

std::shared_ptr<const SearchableLists> gpu_lists(int, const std::shared_ptr<const IvfModel>&,
                                                 const std::vector<SharedSegment>&, const Resources&) {
  throw_no_cuda();
}

Segment merge_on_device(const std::vector<Segment>&, const Resources&) { throw_no_cuda(); }

Segment without_on_device(const ListSegment&, const KeptRows&, int64_t, const Resources&) { throw_no_cuda(); }

Segment code_rows_cuda(int, const IvfModel&, const MatrixView&, int64_t, const Resources&) { throw_no_cuda(); }

int64_t rows_coded_together(int, const IvfModel&, const MatrixView&, const Resources&) { throw_no_cuda(); }

}  // namespace kith
