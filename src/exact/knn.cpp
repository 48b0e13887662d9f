#include <kith/knn.hpp>

#include <kith/error.hpp>

#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
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
  (void)check_knn(RowsInfo(queries), RowsInfo(base), params);
  check_output(out, queries.rows(), params.k);
  with_narrowed("the search", {"queries", queries, "base", base}, params.metric, resources,
                [&](const MatrixView& some, const MatrixView& all, const Resources& used) {
                  warn_of_short_base(some.rows(), all.rows(), params.k, used);
                  const SearchShape shape = check_knn(RowsInfo(some), RowsInfo(all), params);
                  const SearchWish wish{.k = params.k, .check_finite = params.check_finite, .result_space = out.space};
                  const auto least = [&] { return search_footprint(shape, wish, params.filter, used); };
                  within_limits("the search", used, least, [&] {
                    ViewSource query_rows(some);
                    ViewSource base_rows(all);
                    search_knn(shape, wish, {query_rows, base_rows, params.filter}, out, used);
                  });
                });
}

void knn(const VectorFile& queries, const VectorFile& base, const NeighborsSink& sink, const KnnParams& params,
         const Resources& resources) {
  const SearchShape shape = check_knn(RowsInfo(queries), RowsInfo(base), params);
  if (!sink) throw InvalidArgument("the search needs a sink for its results");
  warn_of_short_base(queries.rows(), base.rows(), params.k, resources);
  const SearchWish wish{.k = params.k, .check_finite = params.check_finite, .results_in_memory = false};
  search_files(
      queries, base, resources, [&] { return search_footprint(shape, wish, params.filter, resources); },
      [&](RowSource& query_rows, RowSource& base_rows) {
        search_knn(shape, wish, {query_rows, base_rows, params.filter}, sink, resources);
      });
}

}  // namespace kith
