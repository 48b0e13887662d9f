#include "transform/training_device.hpp"

#include "core/within_limits.hpp"

namespace kith {

Device training_device(const TrainingRows& rows, const DeviceJob& job, const Counts& counts,
                       const std::function<void(int device, const Resources& counting)>& make,
                       const Resources& resources) {
  const MemorySpace space = rows.space();
  const Device asked = resources.device();
  const bool elsewhere = !space.host_readable() && asked.kind == DeviceKind::cuda && asked.index != space.device;
  if (asked == Device::cpu() || elsewhere) return Device::cpu();
  const auto fits = [&](Device gpu) {
    return !counts_memory(resources) ||
           has_room_for(counted(resources, [&](const Resources& counting) { make(gpu.index, counting); }), resources);
  };
  const Device chosen = choose_device(job, {space}, counts, fits, resources);
  return chosen.kind == DeviceKind::cuda && fits(chosen) ? chosen : Device::cpu();
}

}  // namespace kith
