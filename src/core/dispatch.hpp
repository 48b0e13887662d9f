// Picks the backend: the one place where a resolved device turns into a call.
#pragma once

#include <kith/device.hpp>
#include <kith/error.hpp>

namespace kith {

[[noreturn]] inline void throw_no_cuda() {
  throw Unsupported("this build of Kith has no CUDA backend; use device cpu or auto, and data in host memory");
}

// `cpu()` and `cuda(index)` return the same type. `device` has been resolved: it is not `automatic`.
template <typename Cpu, typename Cuda>
decltype(auto) dispatch(Device device, Cpu&& cpu, Cuda&& cuda) {
  if (device.kind == DeviceKind::cuda) {
    if (!built_with_cuda()) throw_no_cuda();
    return cuda(device.index);
  }
  return cpu();
}

}  // namespace kith
