#include <kith/range_search.hpp>

#include <kith/error.hpp>

#include "core/within_limits.hpp"
#include "cuda/device_memory.hpp"
#include "exact/range_loop.hpp"
#include "exact/search_footprint.hpp"
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

RangeNeighbors range_search(const MatrixView& queries, const MatrixView& base, const RangeParams& params,
                            const Resources& resources) {
  const SearchShape shape = check_range(RowsInfo(queries), RowsInfo(base), params);
  if (const ComparedRows rows{"queries", queries, "base", base}; rows.narrowed()) {
    const auto search = [&](const MatrixView& some, const MatrixView& all, const Resources& used) {
      return range_search(some, all, params, used);
    };
    return with_narrowed("the search", rows, params.metric, resources, search);
  }
  ViewSource query_rows(queries);
  ViewSource base_rows(base);
  return search_range(shape, params, {query_rows, {base_rows}, params.filter}, resources);
}

void range_search(const VectorFile& queries, const VectorFile& base, const RangeSink& sink, const RangeParams& params,
                  const Resources& resources) {
  const SearchShape shape = check_range(RowsInfo(queries), RowsInfo(base), params);
  if (!sink) throw InvalidArgument("the search needs a sink for its results");
  if (!params.result_space.host_readable()) {
    throw InvalidArgument("the results of files go to a sink, in host memory; leave result_space as it is");
  }
  const SearchWish wish{.what = Wanted::within, .check_finite = params.check_finite};
  const auto least = [&] {
    return Footprint{queries.memory_bytes() + base.memory_bytes()}.beside(
        range_footprint(shape, wish, params.filter, resources));
  };
  within_limits("the search", resources, least, [&] {
    const ReadMemory query_memory = queries.reserve_memory(resources);
    const ReadMemory base_memory = base.reserve_memory(resources);
    FileSource query_rows(queries);
    FileSource base_rows(base);
    search_range(shape, params, {query_rows, {base_rows}, params.filter}, sink, resources);
  });
}

}  // namespace kith
