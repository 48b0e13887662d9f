// Chooses the GPU for a user-defined metric: the requested one, else the one that holds the data, else the first.
#pragma once

#include <kith/error.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <initializer_list>
#include <string>

namespace kith {

// Unsupported where the CPU is asked for: `name` is a call that runs on GPUs, `instead` the one that does not.
inline Device custom_device(std::initializer_list<MemorySpace> spaces, const Resources& resources, const char* name,
                            const char* instead) {
  if (resources.device().kind == DeviceKind::cpu) {
    throw Unsupported(std::string(name) + " runs on a GPU only; use device cuda or auto, or " + instead +
                      " of custom_metric.hpp");
  }
  if (resources.device().kind != DeviceKind::automatic) return resources.device();
  for (const MemorySpace& space : spaces) {
    if (!space.host_readable()) return Device::cuda(space.device);
  }
  return Device::cuda(0);
}

}  // namespace kith
