// A little pinned host memory for calls of few queries: what goes to the device is copied without a stop on the way,
// and kernels write their results to it, where the host reads them once the stream is done. Pinning takes longer than
// such a call, so pages go back to be used by the next. They are small and few, as streams are, and count against no
// limit.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kith {

class PinnedPage {
 public:
  static constexpr int64_t kUpBytes = int64_t{32} << 10;
  static constexpr int64_t kDownBytes = int64_t{16} << 10;

  // One that nobody uses, or a new one, for the current device and all others.
  PinnedPage();
  // Waits for the stream that uses it, where nobody has.
  ~PinnedPage();
  PinnedPage(const PinnedPage&) = delete;
  PinnedPage& operator=(const PinnedPage&) = delete;

  // Work on that stream uses it from now on, until the stream was waited for.
  void use(cudaStream_t stream) { user_ = stream; }
  void finished() { user_ = nullptr; }

  // What is on its way to the device, and what comes from it: pointers for host and device alike.
  std::byte* up() const { return memory_.get(); }
  std::byte* down() const { return memory_.get() + kUpBytes; }

  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  using Memory = std::unique_ptr<std::byte, Free>;

 private:
  Memory memory_;
  cudaStream_t user_ = nullptr;
};

}  // namespace kith
