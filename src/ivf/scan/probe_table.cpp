#include "ivf/scan/probe_table.hpp"

#include <algorithm>

namespace kith {
namespace {

// Calls use(query, list) for each probe of a part.
template <typename Use>
void for_each_probe(const ProbeTable& table, ProbePart part, const Use& use) {
  for (int64_t q = 0; q < table.queries; ++q) {
    const int64_t begin = part == ProbePart::first ? 0 : table.firsts[q];
    const int64_t end = part == ProbePart::first ? table.firsts[q] : table.counts[q];
    for (int64_t rank = begin; rank < end; ++rank) use(q, table.list(q, rank));
  }
}

// Few probes are sorted, so that one query of a million lists does not look at each of them.
bool is_few(int64_t probes, int64_t lists) { return probes < lists / 16; }

}  // namespace

ProbeTable::ProbeTable(int64_t capacity, int64_t probes, const Resources& resources)
    : width(probes),
      lists(capacity * probes, "the queries' lists", resources),
      counts(capacity, "the queries' lists", resources),
      firsts(capacity, "the queries' lists", resources) {}

Footprint invert_footprint(int64_t queries, int64_t probes, int64_t lists) {
  const int64_t all = queries * probes;
  return array_footprint<uint32_t>(all)
      .beside(is_few(all, lists) ? array_footprint<uint64_t>(all) : array_footprint<int64_t>(lists + 1))
      .beside(array_footprint<ListVisit>(std::min(all, lists), 2));
}

ListVisits invert_probes(const ProbeTable& table, ProbePart part, int64_t lists, const Resources& resources) {
  int64_t total = 0;
  for_each_probe(table, part, [&](int64_t, int32_t) { ++total; });
  ListVisits visits;
  visits.queries = HostArray<uint32_t>(total, "the lists' queries", resources);
  if (is_few(total, lists)) {
    const HostArray<uint64_t> pairs(total, "the lists' queries", resources);
    int64_t at = 0;
    for_each_probe(table, part, [&](int64_t query, int32_t list) {
      pairs[at++] = static_cast<uint64_t>(list) << 32 | static_cast<uint64_t>(query);
    });
    std::sort(pairs.begin(), pairs.end());
    for (int64_t i = 0; i < total; ++i) {
      const auto list = static_cast<int64_t>(pairs[i] >> 32);
      if (visits.lists.empty() || visits.lists.back().list != list) visits.lists.push_back({list, i, 0});
      ++visits.lists.back().count;
      visits.queries[i] = static_cast<uint32_t>(pairs[i]);
    }
    return visits;
  }
  const HostArray<int64_t> next(lists + 1, "the lists' queries", resources);
  std::fill(next.begin(), next.end(), int64_t{0});
  for_each_probe(table, part, [&](int64_t, int32_t list) { ++next[list + 1]; });
  for (int64_t list = 0; list < lists; ++list) {
    if (next[list + 1] > 0) visits.lists.push_back({list, next[list], next[list + 1]});
    next[list + 1] += next[list];
  }
  for_each_probe(table, part,
                 [&](int64_t query, int32_t list) { visits.queries[next[list]++] = static_cast<uint32_t>(query); });
  return visits;
}

}  // namespace kith
