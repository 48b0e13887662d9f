#include "cuda/resolve_device.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "core/memory_budget.hpp"
#include "cuda/device_info.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

DeviceInfo checked(Device asked, DeviceInfo (*describe)(int index)) {
  if (!built_with_cuda()) throw_no_cuda();
  DeviceInfo gpu = describe(asked.index);
  if (gpu.device == asked) return gpu;
  throw InvalidArgument(fmt::format("device {} was asked for; this machine has {} usable CUDA device(s)",
                                    name_of(asked), cuda_devices().size()));
}

// True if `device` is one of several: a call that uses only one device then runs where its data is.
bool is_one_of(Device device, const Resources& resources) {
  if (resources.parts() == 1) return false;
  const std::vector<DeviceParts> all = resources.devices();
  return std::any_of(all.begin(), all.end(), [&](const DeviceParts& one) { return one.device == device; });
}

// The requested device, or the GPU that holds some of the data; automatic if there is neither.
Device device_of(std::string_view job, const ReusedVector<MemorySpace>& spaces, const Resources& resources) {
  Device device = resources.device();
  for (const MemorySpace& space : spaces) {
    if (space.host_readable()) continue;
    const Device there = Device::cuda(space.device);
    if (device.kind == DeviceKind::automatic || is_one_of(there, resources)) device = there;
    if (device == there) continue;
    const std::string text = fmt::format(
        "data in the memory of cuda:{0} was given to {1} on {2}; run it on cuda:{0}, or copy the data to the host",
        space.device, job, name_of(device));
    if (device == Device::cpu()) throw Unsupported(text);
    throw InvalidArgument(text);
  }
  return device.kind == DeviceKind::cuda ? usable_gpu_when_idle(device).device : device;
}

}  // namespace

DeviceInfo usable_gpu(Device device) { return checked(device, cuda_device); }
DeviceInfo usable_gpu_when_idle(Device device) { return checked(device, cuda_device_when_idle); }

int64_t device_memory_left(int device, const Resources& resources) {
  return std::min(resources.device_memory(device)->available(), cuda_device(device).memory_free);
}

Device choose_device(const DeviceJob& job, const ReusedVector<MemorySpace>& spaces, const Counts& counts,
                     const std::function<bool(Device)>& fits, const Resources& resources) {
  constexpr int kAnyThreads = 8;
  Device device = device_of(job.name, spaces, resources);
  if (device.kind != DeviceKind::automatic) return device;
  const int threads = job.changes_result ? kAnyThreads : resources.threads();
  device = worth_a_gpu(counts, threads) ? faster_device(counts, threads, cuda_devices()) : Device::cpu();
  if (job.changes_result) return device;
  if (device != Device::cpu() && fits && !fits(device)) device = Device::cpu();  // it is busy or small
  if (resources.options().log) {                                                 // nobody else wants it written
    resources.log(LogLevel::info, fmt::format("{} on {}", job.description(), name_of(device)));
  }
  return device;
}

}  // namespace kith
