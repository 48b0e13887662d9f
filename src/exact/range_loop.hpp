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

// Uses the radius and check_finite of `params`; the filter is the input's.
RangeNeighbors search_range(const SearchShape& shape, const RangeParams& params, const SearchInput& input,
                            const Resources& resources);
void search_range(const SearchShape& shape, const RangeParams& params, const SearchInput& input, const RangeSink& sink,
                  const Resources& resources);

// Converts the hits of consecutive queries to ids and distances, for all range searches. `numbers`: ids of the rows, if
// these are not their row numbers.
RangeNeighbors write_hits(Metric metric, std::vector<CollectedHits> parts, const uint32_t* numbers, int64_t queries,
                          const Resources& resources);

// Moves a result to the requested memory: unchanged, or copied from the host to a device.
RangeNeighbors in_space(RangeNeighbors found, MemorySpace space, const RangeAllocator& allocate,
                        const Resources& resources);

}  // namespace kith
