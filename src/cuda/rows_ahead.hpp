// The next piece of a base on its way to the device while the present one is searched: two buffers, a stream for the
// copies, and a thread that fetches rows and fills pinned memory meanwhile. The thread is one of its own, since the
// caller's waits for the device; it reports and hears nothing.
#pragma once

#include "cuda/device_context.hpp"
#include "cuda/row_upload.hpp"

#include <cstddef>
#include <functional>
#include <future>

namespace kith {

class RowsAhead {
 public:
  // Under a DeviceGuard. `upload` must outlive it, and be used by nobody else between begin() and await().
  RowsAhead(int device, RowUpload& upload, const Resources& resources);

  // Begins to copy rows, or those picked, to buffer 0 or 1, which lies at `target`; `rows` stay valid until await().
  void begin(int buffer, const MatrixView& rows, const RowPicks& picks, std::byte* target);
  // The same of rows that are first to be fetched, by that thread.
  void begin(int buffer, std::function<MatrixView()> fetch, std::byte* target);
  // Waits until that copy has been enqueued, or throws what it threw; what comes on `stream` waits for the copy.
  void await(int buffer, cudaStream_t stream);
  // What is on `stream` is the last that uses a buffer before it is filled again.
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
