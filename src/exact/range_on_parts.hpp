// Range search by several devices of this process: queries are dealt out, and what the parts have found comes one after
// the other. 12 bytes a row found pass through host memory.
#pragma once

#include <kith/range_search.hpp>
#include <kith/resources.hpp>

#include "ranks/agreement.hpp"

#include <functional>
#include <vector>

namespace kith {

// What consecutive queries have found, in host memory, as one result. Those without queries may be among them.
RangeNeighbors one_after_the_other(std::vector<RangeNeighbors> found, const Resources& resources);

// search(queries, resources): all that these queries find, in host memory.
using PartRangeSearch = std::function<RangeNeighbors(RankPart queries, const Resources& part)>;
RangeNeighbors range_on_parts(int64_t queries, MemorySpace space, const RangeAllocator& allocate,
                              const Resources& resources, const PartRangeSearch& search);

}  // namespace kith
