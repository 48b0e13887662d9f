// The host memory limit with which merging, extending or refining would do as a whole.
#pragma once

#include <kith/graph_merge.hpp>
#include <kith/resources.hpp>

#include "core/named_limit.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// Of all parts, with the results, on the CPU: the largest pair, and what is kept beside it. `fresh`: the second part's
// graph is built too.
int64_t merge_host_bytes(const std::vector<GraphPart>& parts, bool fresh, const GraphMergeParams& params,
                         const Resources& resources);

// Does the work; an OutOfMemory of the host limit, whichever step was refused, leaves it as a NamedLimit of the whole.
template <typename Needed, typename Work>
auto naming_merge_limit(const Needed& needed, const Resources& resources, const Work& work) {
  const int64_t before = resources.host_memory()->used();
  const auto name = [&](const OutOfMemory& error, const std::string& refused) {
    const int64_t limit = resources.host_memory()->limit();
    const int64_t bytes = limit == kNoLimit ? 0 : before + needed();
    if (bytes > limit && bytes > error.bytes_needed()) throw NamedLimit("host", bytes, refused);
  };
  try {
    return work();
  } catch (const NamedLimit& error) {
    if (error.which() == "host") name(error, error.refused());
    throw;
  } catch (const OutOfMemory& error) {
    name(error, error.what());
    throw;
  }
}

}  // namespace kith
