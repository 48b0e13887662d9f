// A memory pool of our own on one device: other users of the default pool neither see it nor are seen. Up to kKeptBytes
// of freed memory stay with it for the next call, since taking memory from the device costs milliseconds a gigabyte;
// the rest goes back.
#pragma once

#include "cuda/error.hpp"

#include <cstdint>

namespace kith {

class MemoryPool {
 public:
  static constexpr uint64_t kKeptBytes = uint64_t{4} << 30;

  explicit MemoryPool(int device) {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypeNone;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    KITH_CUDA_CHECK(cudaMemPoolCreate(&pool_, &properties));
    uint64_t kept = kKeptBytes;
    KITH_CUDA_CHECK(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &kept));
  }
  ~MemoryPool() { (void)cudaMemPoolDestroy(pool_); }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  cudaMemPool_t get() const { return pool_; }

  // What it holds and nobody uses.
  int64_t idle_bytes() const {
    uint64_t held = 0;
    uint64_t used = 0;
    KITH_CUDA_CHECK(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &held));
    KITH_CUDA_CHECK(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used));
    return static_cast<int64_t>(held - used);
  }

 private:
  cudaMemPool_t pool_ = nullptr;
};

}  // namespace kith
