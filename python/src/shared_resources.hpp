// Resources that calls share, so that not every call starts threads of its own.
#pragma once

#include <kith/resources.hpp>

namespace kith::python {

// Without memory limits, for this number of threads (0: one per hardware thread). Call with the GIL held.
Resources shared_resources(int threads);

}  // namespace kith::python
