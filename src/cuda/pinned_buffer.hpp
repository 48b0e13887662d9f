// An owning block of pinned host memory, from and to which GPUs copy asynchronously. It counts against the host memory
// limit. Pinning is slow: keep a buffer if you copy often.
#pragma once

#include <kith/resources.hpp>

#include "core/reservation.hpp"
#include "core/within_limits.hpp"
#include "cuda/error.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

class PinnedBuffer {
 public:
  PinnedBuffer(int64_t bytes, const Resources& resources) : counted_(bytes, 0, resources), bytes_(bytes) {
    if (bytes == 0 || counts_only(resources)) return;
    KITH_CUDA_CHECK(cudaHostAlloc(&memory_, static_cast<size_t>(bytes), cudaHostAllocPortable));
  }
  ~PinnedBuffer() {
    if (memory_ != nullptr) (void)cudaFreeHost(memory_);
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  int64_t bytes() const { return bytes_; }

 private:
  const Reservation counted_;
  void* memory_ = nullptr;
  const int64_t bytes_;
};

}  // namespace kith
