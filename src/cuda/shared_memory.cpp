#include "cuda/shared_memory.hpp"

#include "cuda/error.hpp"

#include <cuda_runtime_api.h>

#include <mutex>
#include <set>
#include <utility>

namespace kith {
namespace {

// Kernels whose limit was raised, by device, so that the driver is not called before every launch.
struct Allowed {
  std::mutex mutex;
  std::set<std::pair<const void*, int>> kernels;
};

Allowed& allowed() {
  static Allowed* const instance = new Allowed;
  return *instance;
}

}  // namespace

void allow_all_shared_memory(const void* kernel) {
  int device = 0;
  KITH_CUDA_CHECK(cudaGetDevice(&device));
  {
    const std::lock_guard lock(allowed().mutex);
    if (allowed().kernels.count({kernel, device}) > 0) return;
  }
  int most = 0;
  cudaFuncAttributes attributes;
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  KITH_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  KITH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       most - static_cast<int>(attributes.sharedSizeBytes)));
  const std::lock_guard lock(allowed().mutex);
  allowed().kernels.insert({kernel, device});
}

}  // namespace kith
