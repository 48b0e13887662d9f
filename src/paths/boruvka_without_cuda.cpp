// Replaces Boruvka's rounds on a GPU in a build without CUDA.
#include "core/dispatch.hpp"
#include "paths/boruvka.hpp"

namespace kith {

std::unique_ptr<BoruvkaBackend> make_boruvka_cuda(const KnnGraph&, DeviceMergeTree&, const Resources&) {
  throw_no_cuda();
}

void widths_cuda(const DeviceMergeTree&, const int64_t*, int64_t, float*, const Resources&) { throw_no_cuda(); }

}  // namespace kith
