// The one place where a call meets the memory limits. Every public call goes through it: what the call needs at least is
// stated as a footprint and compared with what is left before anything is done, so an error names a limit with which the
// whole call works, and a limit of one byte less is refused with the same words.
#pragma once

#include <kith/resources.hpp>

#include "core/footprint.hpp"

#include <string_view>

namespace kith {

// Whether anyone has set a limit. Without one nothing is counted.
bool has_limits(const Resources& resources);

// Throws a NamedLimit where less than `needed` is left, the host's before the device's. `job` as in "not enough memory for
// k-means".
void require_memory(std::string_view job, const Footprint& needed, const Resources& resources);

// Does the work if the limits leave room for least(), its footprint.
template <typename Least, typename Work>
decltype(auto) within_limits(std::string_view job, const Resources& resources, const Least& least, const Work& work) {
  if (has_limits(resources)) require_memory(job, least(), resources);
  return work();
}

}  // namespace kith
