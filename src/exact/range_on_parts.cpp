#include "exact/range_on_parts.hpp"

#include "exact/knn_on_parts.hpp"
#include "exact/range_loop.hpp"
#include "ranks/parts.hpp"

#include <algorithm>
#include <utility>

namespace kith {

RangeNeighbors one_after_the_other(std::vector<RangeNeighbors> found, const Resources& resources) {
  int64_t queries = 0;
  int64_t total = 0;
  for (const RangeNeighbors& part : found) {
    queries += part.queries();
    total += part.size();
  }
  RangeNeighbors all(queries, total, resources);
  int64_t query = 0;
  int64_t at = 0;
  all.offsets()[0] = 0;
  for (RangeNeighbors& part : found) {
    for (int64_t i = 0; i < part.queries(); ++i) all.offsets()[++query] = at + part.offsets()[i + 1];
    std::copy_n(part.ids(), part.size(), all.ids() + at);
    std::copy_n(part.distances(), part.size(), all.distances() + at);
    at += part.size();
    part = {};
  }
  return all;
}

RangeNeighbors range_on_parts(int64_t queries, MemorySpace space, const RangeAllocator& allocate,
                              const Resources& resources, const PartRangeSearch& search) {
  std::vector<RangeNeighbors> found(static_cast<size_t>(resources.parts()));
  run_parts(resources, [&](Communicator& ranks, const Resources& part) {
    const RankPart share = part_of(queries, 1, ranks.rank(), ranks.size());
    if (share.count == 0) return;
    with_rows_from(share.first, 0, [&] { found[static_cast<size_t>(ranks.rank())] = search(share, part); });
  });
  return in_space(one_after_the_other(std::move(found), resources), space, allocate, resources);
}

}  // namespace kith
