// How calls of an index meet the host's memory limit (core/within_limits.hpp).
//
// Calls are counted for the CPU. A GPU takes less of the host, so there the call is tried, and a limit is named that
// would do for either once it was too small.
#pragma once

#include <kith/memory_space.hpp>
#include <kith/resources.hpp>

#include "core/named_limit.hpp"
#include "core/within_limits.hpp"

#include <algorithm>
#include <cstdint>
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
  if (!on_gpu || only_counts(resources)) return within_limits(job, resources, least, work);
  return naming_whole_host_limit([&] { return least().host; }, resources, work);
}

// The same for a call that is counted by making it.
template <typename Call>
decltype(auto) within_index_limits(std::string_view job, bool on_gpu, const Resources& resources, const Call& call) {
  return within_index_limits(
      job, on_gpu, resources, [&] { return footprint_of_call(resources, call); }, [&] { return call(resources); });
}

// Work that takes `behind`, beside pieces for each of which a share of what is left is taken, and `each` at least.
inline Footprint beside_share(const Footprint& behind, int64_t share, int64_t each) {
  return behind.beside({std::max(behind.host / (share - 1) + 1, each)});
}

}  // namespace kith
