// The device that works with codes: additive codes are the CPU's, others as any job.
#pragma once

#include <kith/error.hpp>

#include "cuda/resolve_device.hpp"
#include "kernels/codes/code_format.hpp"

namespace kith {

// Unsupported where additive codes would have to be found, decoded or searched on a GPU.
inline Device resolve_coding_device(const CodeFormat& format, DeviceRequest request, const Resources& resources) {
  if (format.kind != CodeKind::additive) return resolve_device(request, resources);
  request.fits = [](Device) { return false; };
  const Device device = resolve_device(request, resources);
  if (device.kind == DeviceKind::cuda) {
    throw Unsupported(request.job + " of additive codes (LSQ, RQ) on a GPU; take the CPU, with rows in host memory");
  }
  return device;
}

}  // namespace kith
