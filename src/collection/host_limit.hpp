// Whether a call has a limit of host memory: then files are read instead of mapped, and what it takes is counted.
#pragma once

#include <kith/resources.hpp>

namespace kith {

inline bool is_limited(const Resources& resources) { return resources.options().host_memory_limit != kNoLimit; }

}  // namespace kith
