// What a search, or a prepared base, has on a device: a stream and a memory pool. Make one under a DeviceGuard; it can
// be destroyed on any thread, whichever device is current there.
#pragma once

#include "cuda/memory_pool.hpp"
#include "cuda/stream.hpp"

namespace kith {

class DeviceContext {
 public:
  explicit DeviceContext(int device) : device_(device), pool_(device) {}

  int device() const { return device_; }
  cudaStream_t stream() const { return stream_.get(); }
  cudaMemPool_t pool() const { return pool_.get(); }
  void synchronize() const { stream_.synchronize(); }

 private:
  int device_;
  MemoryPool pool_;
  Stream stream_;  // after the pool, so that it goes first and the pool's frees have run
};

}  // namespace kith
