// The memory and the processor that a plan may use.
#pragma once

#include "core/cpu_extensions.hpp"

#include <cstdint>

namespace kith {

struct PlanBudget {
  int64_t host = 0;    // bytes left under the host limit
  int64_t device = 0;  // bytes left under the device limit and on the device
  int threads = 1;
  CpuExtensions cpu = {};  // of the machine that will do the work; none, unless said
};

}  // namespace kith
