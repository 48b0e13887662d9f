#include "cuda/rows_ahead.hpp"

#include "core/start_beside.hpp"
#include "cuda/device_guard.hpp"

#include <utility>

namespace kith {

RowsAhead::RowsAhead(int device, RowUpload& upload, const Resources& resources)
    : upload_(upload), quiet_(resources.with_progress({}).with_cancel(CancelToken())), context_(device) {}

void RowsAhead::begin(int buffer, const MatrixView& rows, const RowPicks& picks, std::byte* target) {
  begin_copy(buffer, [this, rows, picks, target](ProgressMeter& meter) {
    if (picks.list == nullptr) {
      upload_.copy(rows, target, context_.stream(), meter);
    } else {
      upload_.copy(rows, picks, target, context_.stream(), meter);
    }
  });
}

void RowsAhead::begin(int buffer, std::function<MatrixView()> fetch, std::byte* target) {
  begin_copy(buffer, [this, fetch = std::move(fetch), target](ProgressMeter& meter) {
    upload_.copy(fetch(), target, context_.stream(), meter);
  });
}

void RowsAhead::begin_copy(int buffer, std::function<void(ProgressMeter&)> copy) {
  used_[buffer].hold_up(context_.stream());
  const auto work = [this, buffer, copy = std::move(copy)] {
    const DeviceGuard guard(context_.device());
    ProgressMeter meter("copy", 1, quiet_);
    copy(meter);
    copied_[buffer].record(context_.stream());
  };
  copying_ = start_beside(work);
}

void RowsAhead::await(int buffer, cudaStream_t stream) {
  copying_.get();
  copied_[buffer].hold_up(stream);
}

}  // namespace kith
