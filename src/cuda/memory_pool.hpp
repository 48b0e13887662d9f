// A memory pool of our own on one device: other users of the default pool neither see it nor are seen. Up to an eighth
// of the device's memory, 4 GiB at least, stays with it for the next call when it is freed, since taking memory from
// the device costs milliseconds a gigabyte; the rest goes back.
#pragma once

#include "cuda/error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kith {

class MemoryPool {
 public:
  // `device` is the current one.
  explicit MemoryPool(int device) {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypeNone;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    KITH_CUDA_CHECK(cudaMemPoolCreate(&pool_, &properties));
    size_t free_now = 0;
    size_t total = 0;
    KITH_CUDA_CHECK(cudaMemGetInfo(&free_now, &total));
    uint64_t kept = std::max<uint64_t>(uint64_t{4} << 30, total / 8);
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
