// The memory limits with which merging, extending or refining would do as a whole.
#pragma once

#include <kith/graph_merge.hpp>
#include <kith/resources.hpp>

#include "core/named_limit.hpp"
#include "graph/handle/graph_output.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// What work on the parts would do with. `fresh`: the second part's graph is built too.
struct MergeNeeds {
  const std::vector<GraphPart>& parts;
  bool fresh;
  const GraphMergeParams& params;
  MemorySpace out_space;          // where the results lie
  GraphOutputShape results = {};  // arrays that are made for them; none: the caller's are filled
};

// Of all parts, with the results: the largest pair, and what is kept beside it. On a GPU where that is sure to work.
int64_t merge_host_bytes(const MergeNeeds& needs, const Resources& resources);

// The same of a GPU's memory: with the graphs that are brought or made there, and the largest pair's rows where these are.
int64_t merge_device_bytes(const MergeNeeds& needs);

// Does the work; an OutOfMemory of a limit, whichever step was refused, leaves it as a NamedLimit of the whole.
template <typename Work>
auto naming_merge_limit(const MergeNeeds& needs, const Resources& resources, const Work& work) {
  const int64_t host_before = resources.host_memory()->used();
  const int64_t device_before = resources.device_memory()->used();
  const auto name = [&](const OutOfMemory& error, bool host, bool device, const std::string& refused) {
    if (const int64_t limit = resources.host_memory()->limit(); host && limit != kNoLimit) {
      const int64_t bytes = host_before + merge_host_bytes(needs, resources);
      if (bytes > limit && bytes > error.bytes_needed()) throw NamedLimit("host", bytes, refused);
    }
    if (const int64_t limit = resources.device_memory()->limit(); device && limit != kNoLimit) {
      const int64_t bytes = device_before + merge_device_bytes(needs);
      if (bytes > limit && bytes > error.bytes_needed()) throw NamedLimit("device", bytes, refused);
    }
  };
  try {
    return work();
  } catch (const NamedLimit& error) {
    name(error, error.which() == "host", error.which() == "device", error.refused());
    throw;
  } catch (const OutOfMemory& error) {
    name(error, true, true, error.what());
    throw;
  }
}

}  // namespace kith
