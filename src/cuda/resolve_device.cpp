#include "cuda/resolve_device.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

namespace kith {

Device resolve_device(const DeviceRequest& request, const Resources& resources) {
  Device device = resources.device();
  for (const MemorySpace& space : request.spaces) {
    if (space.host_readable()) continue;
    const Device there = Device::cuda(space.device);
    if (device.kind == DeviceKind::automatic) device = there;
    if (device == there) continue;
    const std::string text = fmt::format(
        "data in the memory of cuda:{0} was given to {1} on {2}; run it on cuda:{0}, or copy the data to the host",
        space.device, request.job, name_of(device));
    if (device == Device::cpu()) throw Unsupported(text);
    throw InvalidArgument(text);
  }
  if (device.kind == DeviceKind::automatic) {
    const int threads = resources.threads();
    device = worth_a_gpu(request.work, threads) ? choose_device(request.work, threads, cuda_devices()) : Device::cpu();
    if (device != Device::cpu() && !request.fits(device)) device = Device::cpu();  // it is busy or small
    resources.log(LogLevel::info, fmt::format("{} on {}", request.description(), name_of(device)));
    return device;
  }
  return device.kind == DeviceKind::cuda ? usable_gpu_when_idle(device).device : device;
}

}  // namespace kith
