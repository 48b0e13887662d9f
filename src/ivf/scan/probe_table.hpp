// Which lists the queries of a batch visit, by query and, turned round, by list.
//
// Memory: 4 bytes for each query and probe, twice, and 8 for each list that is visited.
#pragma once

#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// The lists of a batch's queries, nearest first: `width` places for each query, of which it visits the first counts[q].
struct ProbeTable {
  int64_t queries = 0;
  int64_t width = 0;
  HostArray<int32_t> lists;
  HostArray<int32_t> counts;
  HostArray<int32_t> firsts;  // how many of them a query visits before the others

  ProbeTable(int64_t capacity, int64_t probes, const Resources& resources);
  int32_t list(int64_t query, int64_t rank) const { return lists[query * width + rank]; }
};

// The queries of one list.
struct ListVisit {
  int64_t list = 0;
  int64_t first = 0;  // in ListVisits::queries
  int64_t count = 0;
};

struct ListVisits {
  std::vector<ListVisit> lists;
  HostArray<uint32_t> queries;  // by list, ascending in each
};

enum class ProbePart : uint8_t { first, rest };

// The visits of one part of the probes.
ListVisits invert_probes(const ProbeTable& table, ProbePart part, int64_t lists, const Resources& resources);
// What it takes at most.
Footprint invert_footprint(int64_t queries, int64_t probes, int64_t lists);

}  // namespace kith
