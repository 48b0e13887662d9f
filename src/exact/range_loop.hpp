// The loop of a range search: batches of queries, pieces of the base, results out as they are counted.
#pragma once

#include <kith/range_search.hpp>

#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "kernels/select/range_hits.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// The shape of a range search. InvalidArgument or Unsupported where there is no such search.
SearchShape check_range(const RowsInfo& queries, const RowsInfo& base, const RangeParams& params);

// From the params it takes the radius and whether values are checked; the filter is the input's.
RangeNeighbors search_range(const SearchShape& shape, const RangeParams& params, const SearchInput& input,
                            const Resources& resources);
void search_range(const SearchShape& shape, const RangeParams& params, const SearchInput& input, const RangeSink& sink,
                  const Resources& resources);

// The one exit of range searches: what was found for queries one after the other, as ids and distances. `numbers`: of
// the rows, where these are not their ids.
RangeNeighbors write_hits(Metric metric, std::vector<CollectedHits> parts, const uint32_t* numbers, int64_t queries,
                          const Resources& resources);

// A result where it is wanted: as it is, or copied from the host to the device's memory.
RangeNeighbors in_space(RangeNeighbors found, MemorySpace space, const RangeAllocator& allocate,
                        const Resources& resources);

}  // namespace kith
