// Asks the processor, and the system, for the extensions beyond Highway's targets.
#pragma once

#include "core/cpu_extensions.hpp"

namespace kith {

// What this machine has, whatever was forced. Asked once; AMX includes the system's leave to use its registers.
CpuExtensions detect_cpu_extensions();

}  // namespace kith
