#include "cuda/stream_marks.hpp"

#include "cuda/device_context.hpp"
#include "cuda/device_guard.hpp"

namespace kith {

class StreamMark {
 public:
  // Requires a guard of the device.
  StreamMark(int device, cudaStream_t stream) : device_(device) { event_.record(stream); }
  bool passed() const { return event_.passed(); }
  void wait_quietly() const { event_.wait_quietly(); }
  void hold_up_freeing() const { event_.hold_up(freeing_context(device_)->stream()); }

 private:
  Event event_;
  int device_;
};

std::shared_ptr<const StreamMark> mark_stream(int device, const Resources& resources) noexcept {
  const auto stream = static_cast<cudaStream_t>(resources.options().stream);
  if (stream == nullptr || is_counted_only(stream)) return nullptr;
  try {
    const DeviceGuard guard(device);
    return std::make_shared<StreamMark>(device, stream);
  } catch (...) {
    (void)cudaStreamSynchronize(stream);
    return nullptr;
  }
}

StreamMarks::~StreamMarks() {
  for (const auto& mark : marks_) {
    try {
      mark->hold_up_freeing();
    } catch (...) {  // a device that is gone reads nothing
    }
  }
}

void StreamMarks::add(const std::shared_ptr<const StreamMark>& mark) noexcept {
  if (mark == nullptr) return;
  try {
    const std::lock_guard lock(mutex_);
    std::erase_if(marks_, [&](const auto& other) { return other->passed(); });
    marks_.push_back(mark);
  } catch (...) {  // no memory to remember it by
    mark->wait_quietly();
  }
}

}  // namespace kith
