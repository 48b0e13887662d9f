#include <kith/range_search.hpp>

#include <kith/error.hpp>

#include "exact/range_loop.hpp"
#include "exact/search_limit.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kith {

void RangeParams::validate() const {
  if (name_of(metric) == "?") throw InvalidArgument(fmt::format("metric {} is none", static_cast<int>(metric)));
  if (std::isnan(radius)) throw InvalidArgument("the radius is not a number; nothing would be within it");
}

RangeNeighbors range_search(const MatrixView& queries, const MatrixView& base, const RangeParams& params,
                            const Resources& resources) {
  const SearchShape shape = check_range(RowsInfo(queries), RowsInfo(base), params);
  ViewSource query_rows(queries);
  ViewSource base_rows(base);
  return search_range(shape, params, {query_rows, {base_rows}, params.filter}, resources);
}

void range_search(const VectorFile& queries, const VectorFile& base, const RangeSink& sink, const RangeParams& params,
                  const Resources& resources) {
  const SearchShape shape = check_range(RowsInfo(queries), RowsInfo(base), params);
  if (!sink) throw InvalidArgument("the search needs a sink for its results");
  const SearchWish wish{.what = Wanted::within, .check_finite = params.check_finite};
  const int64_t reading = queries.memory_bytes() + base.memory_bytes();
  naming_the_limit({shape, wish, params.filter, reading}, resources, [&] {
    const ReadMemory query_memory = queries.reserve_memory(resources);
    const ReadMemory base_memory = base.reserve_memory(resources);
    FileSource query_rows(queries);
    FileSource base_rows(base);
    search_range(shape, params, {query_rows, {base_rows}, params.filter}, sink, resources);
  });
}

}  // namespace kith
