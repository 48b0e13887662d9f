// Few queries of the host on their way to a device: with the launch that takes them where its arguments have room, or
// by pinned memory, from which they are copied without a stop.
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

  // A batch, whose work is on that stream.
  void begin(cudaStream_t stream) {
    page_.use(stream);
    inline_.bytes = 0;
  }
  // Where the host is to write so many bytes of them; null where neither way has room.
  std::byte* place_for(int64_t bytes) {
    if (by_launch(bytes)) return inline_.values;
    return bytes <= PinnedPage::kUpBytes ? page_.up() : nullptr;
  }
  // Once they are written there: those of the pinned memory go to `to`.
  void send(int64_t bytes, void* to, const DeviceContext& context) {
    if (by_launch(bytes)) {
      inline_.bytes = bytes;
    } else {
      context.copy(to, page_.up(), bytes);
    }
  }
  // Those that were to go with a launch, where there is none that takes them.
  void bring(void* to, const DeviceContext& context) {
    if (inline_.bytes > 0) context.copy(to, inline_.values, inline_.bytes);
    inline_.bytes = 0;
  }
  // Without bytes where they do not go with a launch.
  const InlineQueries& with_launch() const { return inline_; }

 private:
  static bool by_launch(int64_t bytes) { return bytes <= InlineQueries::kMostBytes; }

  PinnedPage page_;
  InlineQueries inline_;
};

}  // namespace kith
