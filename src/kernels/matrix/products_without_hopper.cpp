// Stands in for products on Hopper's matrix units in builds for other GPUs, where product_engine() never chooses
// them.
#include "cuda/without_hopper.hpp"
#include "kernels/matrix/product_cuda.hpp"
#include "kernels/matrix/stream_product_cuda.hpp"

namespace kith {

void launch_stream_wgmma(const StreamProductTask&, cudaStream_t) { throw_no_hopper(); }

template <typename Target>
void launch_wgmma(const ProductOperands&, const ProductSchedule&, const Target&, cudaStream_t) {
  throw_no_hopper();
}
KITH_INSTANTIATE_PRODUCTS(launch_wgmma);

}  // namespace kith
