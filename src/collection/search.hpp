// Searches of one version: each part by itself (its index, or exactly), joined by (distance, row).
#pragma once

#include <kith/collection.hpp>

#include "collection/state.hpp"

namespace kith {

CollectionNeighbors search_state(const CollectionState& state, const MatrixView& queries,
                                 const CollectionSearchParams& params, const Resources& resources);
CollectionRange range_search_state(const CollectionState& state, const MatrixView& queries,
                                   const CollectionRangeParams& params, const Resources& resources);

// InvalidArgument naming the first row with a NaN or an infinity; of rows in host memory.
void check_finite_rows(const MatrixView& rows, const char* what);

}  // namespace kith
