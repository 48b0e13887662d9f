#include "exact/search_footprint.hpp"

#include <kith/range_limit.hpp>
#include <kith/vector_file.hpp>

#include "core/named_limit.hpp"
#include "cuda/resolve_device.hpp"
#include "exact/knn_plan.hpp"
#include "exact/search_checks.hpp"
#include "kernels/select/range_hits.hpp"
#include "rows/kept_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {

Footprint search_footprint(const SearchShape& shape, const SearchRequest& request, const RowFilter& filter,
                           const Resources& resources) {
  const Footprint kept = KeptRows::footprint(filter, shape.rows);
  if (shape.queries == 0 || shape.rows == 0) return kept;
  const MemorySpace space = shape.query_space.host_readable() ? shape.base_space : shape.query_space;
  const Device device = counted_device(space, resources);
  SearchTask task = search_of(shape, request);
  Footprint plan = least_plan(task, device, resources);
  if (filter.form() == RowFilter::Form::none) return kept.beside(plan);
  const FilterPath copied = device.kind == DeviceKind::cuda ? FilterPath::list : FilterPath::gather;
  for (const FilterPath path : {FilterPath::mask, copied}) {
    task.apply_filter(path, shape.rows);
    plan = plan.then(least_plan(task, device, resources));
  }
  return kept.beside(plan);
}

Footprint range_footprint(const SearchShape& shape, const SearchRequest& request, const RowFilter& filter,
                          const Resources& resources) {
  // Twice: a search plans with half of what is left where that will do, and rows found need the other half.
  Footprint least =
      search_footprint(shape, request, filter, resources)
          .beside(RangeHits::footprint(0, shape.queries, resources.threads(), RangeHits::kFirstSegmentBytes))
          .times(2);
  least.at_least = true;
  return least;
}

void throw_kept_range_limit(const VectorFile& queries, const VectorFile& base, const RangeParams& params,
                            const Resources& resources) {
  if (resources.host_memory()->limit() == kNoLimit) throw;  // it was not this limit
  int64_t found = 0;
  int64_t longest = 0;
  range_search(
      queries, base,
      [&](int64_t, const RangeView& part) {
        found += part.size();
        longest = std::max(longest, part.size());
      },
      params, resources);
  const SearchShape shape = check_search(RowsInfo(queries), RowsInfo(base), params.metric);
  const SearchRequest request{.what = Wanted::within};
  constexpr int64_t kKeptBytes = 24;  // an id and a distance, and as much again while arrays grow
  const int64_t results = kKeptBytes * found + 16 * (shape.queries + 1) + RangeHits::kBytesPerHit * longest;
  const int64_t search = search_footprint(shape, request, params.filter, resources).host;
  // The search plans with half of the limit, and each thread is about to fill a piece of memory.
  const int64_t whole = 2 * (std::max(results, search) + resources.threads() * RangeHits::kLargestSegmentBytes) +
                        queries.memory_bytes() + base.memory_bytes();
  throw NamedLimit("host", resources.host_memory()->used() + whole,
                   fmt::format("{} rows are in range, and the host memory limit has no room for all of them; raise the "
                               "limit, or lower the radius",
                               found));
}

}  // namespace kith
