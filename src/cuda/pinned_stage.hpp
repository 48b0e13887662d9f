// Double-buffered pinned memory for large copies between pageable host memory and a GPU: threads fill or drain one half
// while the copy engine works on the other, several times as fast as the driver's own copies. Pinning is slow, so
// stages are kept for later calls; a stage in use counts against the host memory limit.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cuda/device_context.hpp"
#include "cuda/pinned_bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace kith {

// Whether to copy through pinned memory: if there are many bytes in pageable host memory, and the limit has room.
bool wants_pinned(MemorySpace space, int64_t bytes, const Resources& resources);

class PinnedStage {
 public:
  static constexpr int64_t kHalfBytes = kPinnedBytes / 2;

  // Throws OutOfMemory if the limit has no room.
  explicit PinnedStage(const Resources& resources);
  // Waits for copies that use it.
  ~PinnedStage();
  PinnedStage(const PinnedStage&) = delete;
  PinnedStage& operator=(const PinnedStage&) = delete;

  std::byte* half(int i) const;
  // Waits until the last copy of a half, declared by used_by(), is complete. A half without one is free.
  void wait_for(int i) const;
  void used_by(cudaStream_t stream, int i);

  class Memory;

 private:
  const Resources resources_;
  std::unique_ptr<Memory> memory_;
  std::optional<Event> copied_[2];
};

// Copies from a device to pageable host memory, in the order of the context's stream; complete when it returns.
void copy_to_host_staged(void* to, const void* from, int64_t bytes, const DeviceContext& context,
                         const Resources& resources);

}  // namespace kith
