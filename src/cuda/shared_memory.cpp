#include "cuda/shared_memory.hpp"

#include "cuda/error.hpp"

#include <cuda_runtime_api.h>

namespace kith {

void allow_all_shared_memory(const void* kernel) {
  int device = 0;
  int most = 0;
  cudaFuncAttributes attributes;
  KITH_CUDA_CHECK(cudaGetDevice(&device));
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  KITH_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  KITH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       most - static_cast<int>(attributes.sharedSizeBytes)));
}

}  // namespace kith
