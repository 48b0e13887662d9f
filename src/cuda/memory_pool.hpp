// A memory pool of our own on one device: what it holds goes back to the device when it is freed, and other users of
// the default pool neither see it nor are seen.
#pragma once

#include "cuda/error.hpp"

namespace kith {

class MemoryPool {
 public:
  explicit MemoryPool(int device) {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypeNone;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    KITH_CUDA_CHECK(cudaMemPoolCreate(&pool_, &properties));
  }
  ~MemoryPool() { (void)cudaMemPoolDestroy(pool_); }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  cudaMemPool_t get() const { return pool_; }

 private:
  cudaMemPool_t pool_ = nullptr;
};

}  // namespace kith
