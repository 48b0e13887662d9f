// The device resources of a search, or of a prepared base: a stream, its own or the caller's,
// and the device's memory pool. Creating streams and pools takes longer than a small search,
// so a context's own stream is reused, and the pool is kept. Make a context under a
// DeviceGuard; it can be destroyed on any thread, whichever device is current there.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/memory_budget.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kith {

// Tells when the work that was enqueued on a stream so far is complete.
class Event {
 public:
  Event() { KITH_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) { KITH_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  // Whether that work is complete. True if the device is gone.
  bool passed() const {
    const cudaError_t state = cudaEventQuery(event_);
    if (state != cudaSuccess) (void)cudaGetLastError();  // else the next launch would report it
    return state != cudaErrorNotReady;
  }
  // An event that was never recorded is complete.
  void wait() const { KITH_CUDA_CHECK(cudaEventSynchronize(event_)); }
  // The same, without exceptions.
  void wait_quietly() const { (void)cudaEventSynchronize(event_); }
  void hold_up(cudaStream_t stream) const { KITH_CUDA_CHECK(cudaStreamWaitEvent(stream, event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

// A CUDA stream of our own. Its destructor waits for its work, so that no copy outlives the memory it reads or writes.
class Stream {
 public:
  // A blocking stream, ordered after the caller's work on the default stream, which may have written a matrix on the
  // device.
  Stream() { KITH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamDefault)); }
  ~Stream() {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaStreamDestroy(stream_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  void synchronize() const { KITH_CUDA_CHECK(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

// A memory pool of our own on one device, independent of the default pool and its users. Up to an eighth of the
// device's memory, at least 4 GiB, stays in the pool when it is freed, since allocating memory from the device costs
// milliseconds for each gigabyte; more is returned to the device.
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

  // Bytes that it holds but that are not in use.
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

class DeviceContext {
 public:
  // `stream`: a cudaStream_t of the caller's, which must outlive the context; null: one of ours. If it stands for work
  // that is only counted (core/footprint.hpp), nothing is enqueued, and host memory that copies would write stays
  // unchanged.
  explicit DeviceContext(int device, void* stream = nullptr);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  int device() const { return device_; }
  cudaStream_t stream() const { return callers_ != nullptr ? callers_ : own_->get(); }
  cudaMemPool_t pool() const { return pool_->get(); }
  bool counts_only() const { return is_counted_only(callers_); }
  void synchronize() const {
    if (!counts_only()) KITH_CUDA_CHECK(cudaStreamSynchronize(stream()));
  }
  // The same if no copies follow: then the destructor does not wait again.
  void finish() const {
    synchronize();
    finished_ = true;
  }
  // Enqueues a copy between any host and device memory.
  void copy(void* to, const void* from, int64_t bytes) const {
    if (bytes == 0 || counts_only()) return;
    KITH_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream()));
  }
  // The same for `count` values.
  template <typename T>
  void copy_values(T* to, const T* from, int64_t count) const {
    copy(to, from, count * static_cast<int64_t>(sizeof(T)));
  }
  // The same for rows of two matrices of one shape and dtype, each with its stride.
  void copy_rows(const MutableMatrixView& to, const MatrixView& from) const {
    if (from.empty() || counts_only()) return;
    const auto bytes = [&](int64_t values) { return static_cast<size_t>(values * size_of(from.dtype())); };
    KITH_CUDA_CHECK(cudaMemcpy2DAsync(to.data(), bytes(to.row_stride()), from.data(), bytes(from.row_stride()),
                                      bytes(from.cols()), static_cast<size_t>(from.rows()), cudaMemcpyDefault,
                                      stream()));
  }
  // Enqueues setting every byte of `count` values to `byte`: 0, or 0xFF for the largest unsigned numbers and for -1.
  template <typename T>
  void fill(T* values, int byte, int64_t count) const {
    fill_bytes(values, byte, count * static_cast<int64_t>(sizeof(T)), stream());
  }

 private:
  int device_;
  const MemoryPool* pool_;
  cudaStream_t callers_;
  std::unique_ptr<Stream> own_;
  mutable bool finished_ = false;
};

// A context with a stream of its own, independent of the caller's. If memory is only counted, it enqueues nothing.
std::shared_ptr<const DeviceContext> work_context(int device, const Resources& resources);

// One context for each device, on which memory that outlives a call is allocated and freed. Nothing else is enqueued,
// and its stream waits for no other. If memory is only counted: a context that enqueues nothing.
std::shared_ptr<const DeviceContext> allocation_context(int device, const Resources& resources);

// The context for freeing memory that callers' streams may still read (cuda/stream_marks.hpp). Nothing else is enqueued
// there, and no code waits for it.
std::shared_ptr<const DeviceContext> freeing_context(int device);

// The context for freeing memory that work on the default stream may still use: its stream waits for that work.
std::shared_ptr<const DeviceContext> after_default_context(int device);

}  // namespace kith
