// Rows that are added to an index which keeps all of its rows in one memory space: rows from elsewhere are copied
// there, others are used directly.
#pragma once

#include <kith/device.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cuda/device_memory.hpp"
#include "index/index_state.hpp"
#include "rows/host_rows.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace kith {

// The memory space for rows that are added to the state, which may be null: that of its rows; for rows on another
// device the one that the index was told to run on; otherwise their own.
inline MemorySpace place_for(const IndexState* state, const MemorySpace& rows, Device asked) {
  const bool together = state != nullptr && state->content().rows > 0 && !state->content().any_place;
  const MemorySpace there = together ? state->content().space : rows;
  if (rows.host_readable()) return there.host_readable() ? rows : there;
  if (together || asked.kind == DeviceKind::automatic) return there;
  return asked == Device::cpu() ? MemorySpace::host() : MemorySpace::cuda(asked.index);
}

class RowsInPlace {
 public:
  RowsInPlace(const MatrixView& rows, const MemorySpace& place, const Resources& resources) : view_(rows) {
    if (place == rows.space()) return;
    constexpr std::string_view kPurpose = "a copy of the added rows";
    if (place.host_readable()) {
      view_ = on_host_.emplace(rows, resources, kPurpose).view();
      return;
    }
    const int64_t bytes = rows.rows() * rows.cols() * size_of(rows.dtype());
    on_device_ = allocate_on_device(bytes, kPurpose, place.device, resources);
    if (!counts_only(resources)) copy_to_device(rows, on_device_.get(), place.device, resources);
    view_ = MatrixView(on_device_.get(), rows.dtype(), {rows.rows(), rows.cols(), rows.cols()}, place);
  }

  const MatrixView& view() const { return view_; }

 private:
  std::optional<HostRows> on_host_;
  std::shared_ptr<std::byte> on_device_;
  MatrixView view_;
};

}  // namespace kith
