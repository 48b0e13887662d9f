// What a search, or a prepared base, has on a device: a stream, its own or its caller's, and the memory pool of that
// device. Making streams and pools takes longer than a small search, so a context's own stream goes back to be used
// again, and the pool stays. Make one under a DeviceGuard; it can be destroyed on any thread, whichever device is
// current there.
#pragma once

#include "cuda/memory_pool.hpp"
#include "cuda/stream.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class DeviceContext {
 public:
  // `stream` is a cudaStream_t of the caller's, which must outlive the context; null: one of ours.
  explicit DeviceContext(int device, void* stream = nullptr);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  int device() const { return device_; }
  cudaStream_t stream() const { return callers_ != nullptr ? callers_ : own_->get(); }
  cudaMemPool_t pool() const { return pool_->get(); }
  void synchronize() const { KITH_CUDA_CHECK(cudaStreamSynchronize(stream())); }
  // Enqueues a copy, from host or device memory to either.
  void copy(void* to, const void* from, int64_t bytes) const {
    if (bytes == 0) return;
    KITH_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream()));
  }
  // The same for `count` values.
  template <typename T>
  void copy_values(T* to, const T* from, int64_t count) const {
    copy(to, from, count * static_cast<int64_t>(sizeof(T)));
  }
  // Enqueues that every byte of `count` values becomes `byte`: 0, or 0xFF for the largest unsigned numbers and for -1.
  template <typename T>
  void fill(T* values, int byte, int64_t count) const {
    if (count == 0) return;
    KITH_CUDA_CHECK(cudaMemsetAsync(values, byte, static_cast<size_t>(count) * sizeof(T), stream()));
  }

 private:
  int device_;
  const MemoryPool* pool_;
  cudaStream_t callers_;
  std::unique_ptr<Stream> own_;
};

// One for each device, on which memory that outlives a call is taken and given back, and nothing else is enqueued: its
// stream waits for no other.
std::shared_ptr<const DeviceContext> allocation_context(int device);

// The context in whose order memory is freed that callers' streams may still be reading: see cuda/stream_marks.hpp.
// Nothing else is enqueued there; nobody waits for it.
std::shared_ptr<const DeviceContext> freeing_context(int device);

// The context in whose order memory is freed that work on the default stream may still use: its stream waits for that.
std::shared_ptr<const DeviceContext> after_default_context(int device);

}  // namespace kith
