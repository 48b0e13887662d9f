// All vectors within a radius in the lists of each query, on a GPU: list_range_cuda.hpp for one segment after the other,
// put together by query and handed over. Where more are found than there is room for, they are looked for again: with
// more room, or for fewer queries.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "kernels/select/range_hits.hpp"
#include "ivf/search/list_search_cuda.hpp"

#include <memory>

namespace kith {

// `kept`: the filter's bits on the device, or null. The resources work on the context's stream.
void search_lists_in_range(const GpuModelCuda& model, const GpuParts& parts, const MatrixView& queries,
                           const IvfRange& range, const uint64_t* kept, bool check_finite, RangeHits& hits,
                           const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

}  // namespace kith
