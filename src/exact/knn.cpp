#include <kith/knn.hpp>

#include <kith/error.hpp>

#include "core/within_limits.hpp"
#include "exact/knn_loop.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "rows/narrowed_rows.hpp"

#include <fmt/format.h>

namespace kith {

void KnnParams::validate() const {
  if (name_of(metric) == "?") throw InvalidArgument(fmt::format("metric {} is none", static_cast<int>(metric)));
  if (k < 1) throw InvalidArgument(fmt::format("k = {}; at least one neighbour must be asked for", k));
}

Neighbors knn(const MatrixView& queries, const MatrixView& base, const KnnParams& params, const Resources& resources) {
  (void)check_knn(RowsInfo(queries), RowsInfo(base), params);
  return within_limits("the search", resources, [&](const Resources& used) {
    Neighbors result(queries.rows(), params.k, used);
    knn(queries, base, result.view(), params, used);
    return result;
  });
}

void knn(const MatrixView& queries, const MatrixView& base, const NeighborsView& out, const KnnParams& params,
         const Resources& resources) {
  const SearchShape shape = check_knn(RowsInfo(queries), RowsInfo(base), params);
  check_output(out, queries.rows(), params.k);
  if (const ComparedRows rows{"queries", queries, "base", base}; rows.narrowed()) {
    const auto search = [&](const MatrixView& some, const MatrixView& all, const Resources& used) {
      knn(some, all, out, params, used);
    };
    return with_narrowed("the search", rows, params.metric, resources, search);
  }
  warn_of_short_base(queries.rows(), base.rows(), params.k, resources);
  const SearchWish wish{.k = params.k, .check_finite = params.check_finite, .result_space = out.space};
  within_limits(
      "the search", resources, [&] { return search_footprint(shape, wish, params.filter, resources); },
      [&] {
        ViewSource query_rows(queries);
        ViewSource base_rows(base);
        search_knn(shape, wish, {query_rows, base_rows, params.filter}, out, resources);
      });
}

void knn(const VectorFile& queries, const VectorFile& base, const NeighborsSink& sink, const KnnParams& params,
         const Resources& resources) {
  const SearchShape shape = check_knn(RowsInfo(queries), RowsInfo(base), params);
  if (!sink) throw InvalidArgument("the search needs a sink for its results");
  warn_of_short_base(queries.rows(), base.rows(), params.k, resources);
  const SearchWish wish{.k = params.k, .check_finite = params.check_finite, .results_in_memory = false};
  const auto least = [&] {
    return Footprint{queries.memory_bytes() + base.memory_bytes()}.beside(
        search_footprint(shape, wish, params.filter, resources));
  };
  within_limits("the search", resources, least, [&] {
    const ReadMemory query_memory = queries.reserve_memory(resources);
    const ReadMemory base_memory = base.reserve_memory(resources);
    FileSource query_rows(queries);
    FileSource base_rows(base);
    search_knn(shape, wish, {query_rows, base_rows, params.filter}, sink, resources);
  });
}

}  // namespace kith
