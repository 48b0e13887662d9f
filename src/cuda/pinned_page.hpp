// Reusable memory for calls of few queries. A page has a little pinned host memory, through which queries are copied to
// the device asynchronously and to which kernels write results, which the host reads after the stream has finished;
// some words on the device that need no initialisation; and scratch memory there. Allocating these from the driver
// takes longer than such a call, so pages are reused. They are small and few, as streams are, and count against no
// limit. A wide page is for about a thousand queries: 16 times as much pinned memory.
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
  static constexpr int64_t kWide = 16;
  static constexpr int64_t kRoomBytes = int64_t{64} << 10;

  // Takes an idle page, or makes a new one, for the current device, which is `device`.
  explicit PinnedPage(int device, bool wide = false);
  // Waits for the stream that uses it, unless that was done before.
  ~PinnedPage();
  PinnedPage(const PinnedPage&) = delete;
  PinnedPage& operator=(const PinnedPage&) = delete;

  // Declares that work on that stream uses the page until the stream was waited for.
  void use(cudaStream_t stream) { user_ = stream; }
  void finished() { user_ = nullptr; }

  // Data on its way to the device, and data from it; the pointers are valid on host and device.
  std::byte* up() const { return memory_->host; }
  std::byte* down() const { return memory_->host + up_bytes(); }
  int64_t up_bytes() const { return wide_ ? kWide * kUpBytes : kUpBytes; }

  // On the device: 0xFFFFFFFF each before a kernel uses them, and it leaves them so.
  struct Words {
    uint32_t arrived;  // blocks that are done, less one
    uint32_t bad_row;  // the first row that is not finite
  };
  Words* words() const { return memory_->words; }
  // On the device: kRoomBytes of scratch memory.
  std::byte* room() const { return memory_->room; }

  struct Memory {
    std::byte* host = nullptr;
    Words* words = nullptr;
    std::byte* room = nullptr;

    Memory() = default;
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
  };

 private:
  int device_;
  bool wide_;
  std::unique_ptr<Memory> memory_;
  cudaStream_t user_ = nullptr;
};

}  // namespace kith
