// When memory of an index on a device may be freed. A search that is enqueued on a caller's stream may read it after
// the call has returned, so it marks that stream, and the memory is freed in the order of a stream that does nothing
// but wait for such marks (freeing_context). The host never waits, and no stream waits for another's search.
//
// For code that is compiled with and without CUDA; without it nothing is ever marked.
#pragma once

#include <kith/resources.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace kith {

class StreamMark;  // a point in the order of a stream

// Marks the current end of the caller's stream on that device. Null if the resources have no stream: Kith waits for its
// own streams. Never throws; if a mark cannot be made, waits for the stream.
std::shared_ptr<const StreamMark> mark_stream(int device, const Resources& resources) noexcept;

// The marks of some memory. Destroy it before the memory, which must be of allocate_for_searches() or freed as that is.
class StreamMarks {
 public:
  StreamMarks() = default;
  ~StreamMarks();
  StreamMarks(const StreamMarks&) = delete;
  StreamMarks& operator=(const StreamMarks&) = delete;

  // Adds a mark and drops those already reached. Searches wait for their stream, so few remain. Null is ignored.
  void add(const std::shared_ptr<const StreamMark>& mark) noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const StreamMark>> marks_;
};

}  // namespace kith
