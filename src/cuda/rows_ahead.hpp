// Copies the next piece of a base to the device while the current one is searched: two buffers, a stream for the
// copies, and a thread that fetches rows and fills pinned memory. It needs its own thread, since the caller's waits for
// the device; that thread neither reports progress nor checks for cancellation.
#pragma once

#include "cuda/device_context.hpp"
#include "cuda/row_upload.hpp"

#include <cstddef>
#include <functional>
#include <future>

namespace kith {

class RowsAhead {
 public:
  // Requires a DeviceGuard. `upload` must outlive it, and must not be used elsewhere between begin() and await().
  RowsAhead(int device, RowUpload& upload, const Resources& resources);

  // Starts copying rows, or the picked ones, to buffer 0 or 1, at `target`; `rows` must stay valid until await().
  void begin(int buffer, const MatrixView& rows, const RowPicks& picks, std::byte* target);
  // The same for rows that the thread fetches first.
  void begin(int buffer, std::function<MatrixView()> fetch, std::byte* target);
  // Waits until that copy has been enqueued, or rethrows its exception; later work on `stream` waits for the copy.
  void await(int buffer, cudaStream_t stream);
  // Declares that the work on `stream` so far is the last use of a buffer before it is filled again.
  void used(int buffer, cudaStream_t stream) { used_[buffer].record(stream); }

 private:
  void begin_copy(int buffer, std::function<void(ProgressMeter&)> copy);

  RowUpload& upload_;
  const Resources quiet_;
  const DeviceContext context_;  // of the copies
  Event copied_[2];
  Event used_[2];
  std::future<void> copying_;  // the last member: it ends first
};

}  // namespace kith
