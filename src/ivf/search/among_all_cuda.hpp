// Queries that products leave, where they are many and look at many vectors: exact search of all vectors of the segment
// says for most of them what comparing them one by one with those of their lists would. A query whose k nearest of all
// vectors lie in its lists is done; others are left.
//
// Cost: a copy of the vectors in the order of their rows, so that equal distances are in that order, and an exact
// search of those queries. Memory beyond the search's, which it does without where there is none: the vectors once
// more, 4 bytes a vector, that of an exact search, and 12 bytes a neighbour.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "cuda/device_context.hpp"
#include "ivf/search/ivf_search_cuda.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kith {

// Before the last step of a search that was launched without it (launch_ivf_direct), which is left `count` queries:
// puts those that are still left in their place, and returns their number. Waits.
uint32_t search_among_all(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                          Metric metric, uint32_t count, std::byte* memory,
                          const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

}  // namespace kith
