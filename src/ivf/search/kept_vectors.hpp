// A filter that keeps few vectors of all lists: these are found and compared, and no list is scanned.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/reused_memory.hpp"
#include "ivf/scan/list_scan.hpp"
#include "ivf/search/ivf_search.hpp"
#include "ivf/segment/place_table.hpp"

#include <cstdint>

namespace kith {

// Whether only few vectors of all lists are searched.
bool keeps_few(const ListedVectors& vectors, const IvfSearch& task, int64_t kept);

using PlaceTables = ReusedVector<SharedPlaceTable>;  // of all segments, or none

// The places of the `kept` vectors that a filter keeps, ascending: by the tables, or by a pass over the rows of all.
HostArray<uint32_t> find_kept(const ListedVectors& vectors, const PlaceTables& tables, const uint64_t* bits,
                              int64_t kept, const Resources& resources);

// Finds the nearest of few kept vectors: for few queries as kept_scan.hpp says, for more by an exact search of what they
// are decoded to, in the order of their rows. False, and nothing is done, where there is no room for that, keys are made
// from norms that codes hold, or fewer than k are kept, which an exact search would warn about.
bool search_kept(const ListedVectors& vectors, const PlaceTables& tables, const MatrixView& queries,
                 const IvfSearch& task, int64_t kept, const NeighborsView& out, const Resources& resources);

}  // namespace kith
