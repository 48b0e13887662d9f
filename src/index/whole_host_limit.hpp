// Names the host memory limit of a call that learns the memory of its steps only as it goes: adding rows of files,
// piece by piece.
#pragma once

#include <kith/error.hpp>
#include <kith/resources.hpp>

#include "core/memory_budget.hpp"
#include "core/named_limit.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace kith {

// Does the work, and rethrows an OutOfMemory of the host limit as a NamedLimit. `needed()`: all bytes of the work. A
// step may name a limit of its own, which would be too small for later steps: the larger one of both is named.
template <typename Needed, typename Work>
decltype(auto) naming_whole_host_limit(const Needed& needed, const Resources& resources, const Work& work) {
  const int64_t before = resources.host_memory()->used();
  try {
    return work();
  } catch (const OutOfMemory& error) {
    const auto* const named = dynamic_cast<const NamedLimit*>(&error);
    const int64_t limit = resources.host_memory()->limit();
    if (limit == kNoLimit || (named != nullptr && named->which() != "host")) throw;
    const int64_t bytes = needed();
    const int64_t whole = std::max(bytes > kNoLimit - before ? kNoLimit : before + bytes,
                                   named == nullptr ? int64_t{0} : named->bytes_needed());
    if (whole <= limit) throw;  // another limit was too small
    throw NamedLimit("host", whole, named == nullptr ? std::string(error.what()) : named->refused());
  }
}

}  // namespace kith
