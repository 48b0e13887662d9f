// Queries that products leave (ivf_search_cuda.hpp), where they are many and look at long lists of f32: exact search of
// each such list (long_lists_cuda.hpp) in the place of comparing them one by one with all of its vectors; other lists
// directly.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cuda/device_context.hpp"
#include "ivf/search/ivf_search_cuda.hpp"

#include <cstddef>
#include <memory>

namespace kith {

// Whether a search by this plan should leave its last step to search_left_queries().
bool suits_left_queries(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                        Metric metric);

// The last step of a search that was launched without it. Waits for the search.
void search_left_queries(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                         Metric metric, std::byte* memory, const std::shared_ptr<const DeviceContext>& context,
                         const Resources& beyond);

}  // namespace kith
