// Resources that calls share, so that not every call starts threads of its own.
#pragma once

#include <kith/device.hpp>
#include <kith/resources.hpp>

#include <vector>

namespace kith::python {

// Without memory limits, for this number of threads (0: one per hardware thread) and devices; those of all devices
// share the same threads. Call with the GIL held; the next call may change what it refers to.
const Resources& shared_resources(int threads, const std::vector<DeviceParts>& devices);

}  // namespace kith::python
