// How calls of an index meet the host's memory limit (core/within_limits.hpp).
//
// Footprints are stated for the CPU. A GPU takes less of the host, so there the call is tried, and a limit is named that
// would do for either once it was too small.
#pragma once

#include <kith/memory_space.hpp>
#include <kith/resources.hpp>

#include "core/named_limit.hpp"
#include "core/within_limits.hpp"

#include <initializer_list>
#include <string_view>

namespace kith {

inline bool works_on_gpu(const Resources& resources, std::initializer_list<MemorySpace> spaces) {
  for (const MemorySpace& space : spaces) {
    if (!space.host_readable()) return true;
  }
  return resources.device().kind == DeviceKind::cuda;
}

template <typename Least, typename Work>
decltype(auto) within_index_limits(std::string_view job, bool on_gpu, const Resources& resources, const Least& least,
                                   const Work& work) {
  if (!on_gpu || resources.host_memory()->counts_only()) return within_limits(job, resources, least, work);
  return naming_whole_host_limit([&] { return least().host; }, resources, work);
}

}  // namespace kith
