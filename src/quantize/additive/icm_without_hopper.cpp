// Replaces the search for codes on Hopper's matrix units in builds for other GPUs, where product_engine() never chooses
// it.
#include "cuda/without_hopper.hpp"
#include "quantize/additive/icm_task_cuda.hpp"

namespace kith {

void launch_icm_products(const IcmBooks&, const IcmRows&, const IcmRun&, cudaStream_t) { throw_no_hopper(); }

}  // namespace kith
