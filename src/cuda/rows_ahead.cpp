#include "cuda/rows_ahead.hpp"

#include "cuda/device_guard.hpp"

namespace kith {

RowsAhead::RowsAhead(int device, RowUpload& upload, const Resources& resources)
    : upload_(upload), quiet_(resources.with_progress({}).with_cancel(CancelToken())), context_(device) {}

void RowsAhead::begin(int buffer, const MatrixView& rows, const RowPicks& picks, std::byte* target) {
  used_[buffer].hold_up(context_.stream());
  copying_ = std::async(std::launch::async, [this, buffer, rows, picks, target] {
    const DeviceGuard guard(context_.device());
    ProgressMeter meter("copy", picks.count, quiet_);
    if (picks.list == nullptr) {
      upload_.copy(rows, target, context_.stream(), meter);
    } else {
      upload_.copy(rows, picks, target, context_.stream(), meter);
    }
    copied_[buffer].record(context_.stream());
  });
}

void RowsAhead::await(int buffer, cudaStream_t stream) {
  copying_.get();
  copied_[buffer].hold_up(stream);
}

}  // namespace kith
