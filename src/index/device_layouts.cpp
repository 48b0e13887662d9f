#include "index/device_layouts.hpp"

namespace kith {

DeviceLayouts::Layout DeviceLayouts::find_locked(Device device, DType queries) const {
  for (const auto& [candidate, layout] : layouts_) {
    if (candidate == device && layout->serves(queries)) return layout;
  }
  return nullptr;
}

DeviceLayouts::Layout DeviceLayouts::find(Device device, DType queries) const {
  const std::lock_guard lock(mutex_);
  return find_locked(device, queries);
}

DeviceLayouts::Layout DeviceLayouts::keep(Device device, DType queries, Layout made) {
  const std::lock_guard lock(mutex_);
  if (Layout other = find_locked(device, queries)) return other;
  return layouts_.emplace_back(device, std::move(made)).second;
}

IndexBytes DeviceLayouts::bytes() const {
  const std::lock_guard lock(mutex_);
  IndexBytes total;
  for (const auto& [device, layout] : layouts_) {
    (device.kind == DeviceKind::cuda ? total.device : total.host) += layout->bytes();
  }
  return total;
}

}  // namespace kith
