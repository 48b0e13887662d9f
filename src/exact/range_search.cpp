#include <kith/range_search.hpp>

#include <kith/error.hpp>

#include "cuda/device_memory.hpp"
#include "exact/range_loop.hpp"
#include "exact/range_on_parts.hpp"
#include "exact/search_footprint.hpp"
#include "ranks/parts.hpp"
#include "ranks/transfer.hpp"
#include "rows/narrowed_rows.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kith {

void RangeParams::validate() const {
  if (name_of(metric) == "?") throw InvalidArgument(fmt::format("metric {} is none", static_cast<int>(metric)));
  if (std::isnan(radius)) throw InvalidArgument("the radius is not a number; nothing would be within it");
}

RangeNeighbors::RangeNeighbors(int64_t queries, int64_t found, MemorySpace space, const RangeAllocator& allocate,
                               const Resources& resources)
    : queries_(queries), found_(found), space_(space) {
  const auto take = [&](int64_t count, int64_t bytes_each) -> std::shared_ptr<void> {
    if (allocate) return allocate(count, bytes_each);
    return allocate_on_device(count * bytes_each, "the rows in range", space.device, resources);
  };
  on_device_[0] = take(queries + 1, 8);
  on_device_[1] = take(found, 8);
  on_device_[2] = take(found, 4);
}

namespace {

// Every part searches all rows for its queries.
RangeNeighbors search_on_parts(const MatrixView& queries, const MatrixView& base, const RangeParams& params,
                               const Resources& resources) {
  wait_for_caller(resources, queries.space(), base.space());
  RangeParams own = params;
  own.result_space = MemorySpace::host();
  own.allocate = {};
  return range_on_parts(queries.rows(), params.result_space, params.allocate, resources,
                        [&](RankPart some, const Resources& part) {
                          const RowsOnPart asked(queries.slice(some.first, some.count), part);
                          const RowsOnPart searched(base, part);
                          return range_search(asked.view(), searched.view(), own, part);
                        });
}

}  // namespace

RangeNeighbors range_search(const MatrixView& queries, const MatrixView& base, const RangeParams& params,
                            const Resources& resources) {
  (void)check_range(RowsInfo(queries), RowsInfo(base), params);
  return with_narrowed("the search", {"queries", queries, "base", base}, params.metric, resources,
                       [&](const MatrixView& some, const MatrixView& all, const Resources& used) {
                         ViewSource query_rows(some);
                         ViewSource base_rows(all);
                         const SearchShape shape = check_range(RowsInfo(some), RowsInfo(all), params);
                         if (is_shared(used)) return search_on_parts(some, all, params, used);
                         return search_range(shape, params, {query_rows, {base_rows}, params.filter}, used);
                       });
}

void range_search(const VectorFile& queries, const VectorFile& base, const RangeSink& sink, const RangeParams& params,
                  const Resources& resources) {
  const SearchShape shape = check_range(RowsInfo(queries), RowsInfo(base), params);
  if (!sink) throw InvalidArgument("the search needs a sink for its results");
  if (!params.result_space.host_readable()) {
    throw InvalidArgument("the results of files go to a sink, in host memory; leave result_space as it is");
  }
  const SearchRequest request{.what = Wanted::within, .check_finite = params.check_finite};
  search_files(
      queries, base, resources, [&] { return range_footprint(shape, request, params.filter, resources); },
      [&](RowSource& query_rows, RowSource& base_rows) {
        search_range(shape, params, {query_rows, {base_rows}, params.filter}, sink, resources);
      });
}

}  // namespace kith
