// What a call of few queries has ready from the calls before: a little pinned host memory, by which queries go to the
// device without a stop on the way and to which kernels write results, where the host reads them once the stream is
// done; some words on the device that need no setting, and room there for what a call forgets. Taking any of it from
// the driver takes longer than such a call, so pages go back to be used by the next. They are small and few, as streams
// are, and count against no limit. A wide page is for a thousand queries or so: 16 times as much pinned memory.
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

  // One that nobody uses, or a new one, for the current device, which is `device`.
  explicit PinnedPage(int device, bool wide = false);
  // Waits for the stream that uses it, where nobody has.
  ~PinnedPage();
  PinnedPage(const PinnedPage&) = delete;
  PinnedPage& operator=(const PinnedPage&) = delete;

  // Work on that stream uses it from now on, until the stream was waited for.
  void use(cudaStream_t stream) { user_ = stream; }
  void finished() { user_ = nullptr; }

  // What is on its way to the device, and what comes from it: pointers for host and device alike.
  std::byte* up() const { return memory_->host; }
  std::byte* down() const { return memory_->host + up_bytes(); }
  int64_t up_bytes() const { return wide_ ? kWide * kUpBytes : kUpBytes; }

  // On the device: 0xFFFFFFFF each before a kernel uses them, and it leaves them so.
  struct Words {
    uint32_t arrived;  // blocks that are done, less one
    uint32_t bad_row;  // the first row that is not finite
  };
  Words* words() const { return memory_->words; }
  // On the device: kRoomBytes of anything.
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
