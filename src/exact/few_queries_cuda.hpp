// Brings a few queries from the host to a device: as kernel arguments if they fit, otherwise through pinned memory,
// from which they are copied asynchronously.
#pragma once

#include "cuda/device_context.hpp"
#include "cuda/pinned_page.hpp"
#include "kernels/rerank/few_results_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

class FewQueries {
 public:
  // For the current device, which is `device`.
  explicit FewQueries(int device) : page_(device) {}

  PinnedPage& page() { return page_; }
  const PinnedPage& page() const { return page_; }

  // Begins a batch, whose work is enqueued on this stream.
  void begin(cudaStream_t stream) {
    page_.use(stream);
    inline_.bytes = 0;
  }
  // Where the host writes `bytes` bytes of queries; null if neither way has room.
  std::byte* place_for(int64_t bytes) {
    if (by_launch(bytes)) return inline_.values;
    return bytes <= PinnedPage::kUpBytes ? page_.up() : nullptr;
  }
  // Call after writing: copies queries in pinned memory to `to`.
  void send(int64_t bytes, void* to, const DeviceContext& context) {
    if (by_launch(bytes)) {
      inline_.bytes = bytes;
    } else {
      context.copy(to, page_.up(), bytes);
    }
  }
  // Copies queries that were written as kernel arguments, for kernels that take none.
  void bring(void* to, const DeviceContext& context) {
    if (inline_.bytes > 0) context.copy(to, inline_.values, inline_.bytes);
    inline_.bytes = 0;
  }
  // Empty if the queries are not kernel arguments.
  const InlineQueries& with_launch() const { return inline_; }

 private:
  static bool by_launch(int64_t bytes) { return bytes <= InlineQueries::kMostBytes; }

  PinnedPage page_;
  InlineQueries inline_;
};

}  // namespace kith
