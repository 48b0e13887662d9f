// Range search by several devices of this process, which divide the queries; the results of the parts are concatenated.
// 12 bytes for each hit pass through host memory.
#pragma once

#include <kith/range_search.hpp>
#include <kith/resources.hpp>

#include "ranks/agreement.hpp"

#include <functional>
#include <vector>

namespace kith {

// Concatenates the results of consecutive queries in host memory. Some may be of no queries.
RangeNeighbors one_after_the_other(std::vector<RangeNeighbors> found, const Resources& resources);

// search(queries, resources) returns all hits of these queries, in host memory.
using PartRangeSearch = std::function<RangeNeighbors(RankPart queries, const Resources& part)>;
RangeNeighbors range_on_parts(int64_t queries, MemorySpace space, const RangeAllocator& allocate,
                              const Resources& resources, const PartRangeSearch& search);

}  // namespace kith
