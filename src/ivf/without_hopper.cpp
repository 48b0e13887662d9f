// Stands in for the kernels that Hopper GPUs alone can run, in builds for other GPUs. product_engine() never chooses them
// there, so that nobody gets here.
#include <kith/error.hpp>

#include "ivf/scan/scan_lists_task_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"
#include "kernels/matrix/stream_product_cuda.hpp"
#include "quantize/additive/icm_task_cuda.hpp"

namespace kith {
namespace {

[[noreturn]] void throw_no_hopper() {
  throw Unsupported("this build has no code for GPUs of compute capability 9.0; build with CMAKE_CUDA_ARCHITECTURES=90");
}

}  // namespace

void launch_scan_wgmma(const ScanListsTask&, bool, cudaStream_t) { throw_no_hopper(); }
void launch_scan_wide(const ScanListsTask&, bool, cudaStream_t) { throw_no_hopper(); }
void launch_stream_wgmma(const StreamProductTask&, cudaStream_t) { throw_no_hopper(); }
void launch_icm_products(const IcmBooks&, const IcmRows&, const IcmRun&, cudaStream_t) { throw_no_hopper(); }

template <typename Target>
void launch_wgmma(const ProductOperands&, const ProductSchedule&, const Target&, cudaStream_t) {
  throw_no_hopper();
}
#define KITH_INSTANTIATE(Target) \
  template void launch_wgmma(const ProductOperands&, const ProductSchedule&, const Target&, cudaStream_t)
KITH_INSTANTIATE(ProductMinima);
KITH_INSTANTIATE(ProductCandidates);
KITH_INSTANTIATE(ProductParts);
KITH_INSTANTIATE(ProductMarks);
KITH_INSTANTIATE(ProductNearest);
KITH_INSTANTIATE(ProductPairs);
#undef KITH_INSTANTIATE

}  // namespace kith
