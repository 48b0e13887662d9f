// Searches of one version: each part by itself (its index, or exactly), joined by (distance, row).
#pragma once

#include <kith/collection.hpp>

#include "collection/state.hpp"

namespace kith {

CollectionNeighbors search_state(const CollectionState& state, const MatrixView& queries,
                                 const CollectionSearchParams& params, const Resources& resources);
CollectionRange range_search_state(const CollectionState& state, const MatrixView& queries,
                                   const CollectionRangeParams& params, const Resources& resources);

}  // namespace kith
