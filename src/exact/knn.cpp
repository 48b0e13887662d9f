#include <kith/knn.hpp>

#include <kith/error.hpp>
#include <kith/refused_row.hpp>

#include "core/memory_budget.hpp"
#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/knn_on_parts.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "io/row_slice.hpp"
#include "ranks/parts.hpp"
#include "ranks/transfer.hpp"
#include "rows/narrowed_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {

void KnnParams::validate() const {
  if (name_of(metric) == "?") throw InvalidArgument(fmt::format("metric {} is none", static_cast<int>(metric)));
  if (k < 1) throw InvalidArgument(fmt::format("k = {}; at least one neighbour must be asked for", k));
}

namespace {

bool has_filter(const KnnParams& params) { return params.filter.form() != RowFilter::Form::none; }

Device device_that_holds(const MatrixView& rows) {
  return rows.space().host_readable() ? Device::cpu() : Device::cuda(rows.space().device);
}

KnnParams with_k(const KnnParams& params, int64_t k) {
  KnnParams own = params;
  own.k = k;
  return own;
}

void search_on_parts(const SearchShape& shape, const MatrixView& queries, const MatrixView& base,
                     const NeighborsView& out, const KnnParams& params, const Resources& resources) {
  wait_for_caller(resources, queries.space(), base.space(), out.space);
  knn_on_parts(
      shared_knn(shape, params.k, has_filter(params), device_that_holds(base), resources),
      [&](RankPart some, RankPart rows, const NeighborsView& found, const Resources& part) {
        const RowsOnPart own(queries.slice(some.first, some.count), part);
        const RowsOnPart searched(base.slice(rows.first, rows.count), part);
        knn(own.view(), searched.view(), found, with_k(params, found.k), part.with_log({}));
      },
      out, resources);
}

// Blocks of queries, as many as their results have room for; each is searched by all parts.
void search_on_parts(const SearchShape& shape, const VectorFile& queries, const VectorFile& base,
                     const NeighborsSink& sink, const KnnParams& params, const Resources& resources) {
  constexpr int64_t kBlockBytes = int64_t{256} << 20;
  const int64_t each = params.k * kNeighborBytes;
  const int64_t room = std::min(kBlockBytes, resources.host_memory()->available() / 8);
  const int64_t block = std::clamp<int64_t>(room / each, 1, shape.queries);
  Neighbors found(block, params.k, resources);
  for (int64_t first = 0; first < shape.queries; first += block) {
    SearchShape of_block = shape;
    of_block.queries = std::min(block, shape.queries - first);
    NeighborsView out = found.view();
    out.queries = of_block.queries;
    const auto search = [&](RankPart some, RankPart rows, const NeighborsView& to, const Resources& part) {
      const auto take = [&](int64_t at, const NeighborsView& batch) {
        std::copy_n(batch.ids, batch.queries * batch.k, to.ids + at * to.k);
        std::copy_n(batch.distances, batch.queries * batch.k, to.distances + at * to.k);
      };
      knn(slice_of(queries, first + some.first, some.count), slice_of(base, rows.first, rows.count), take,
          with_k(params, to.k), part.with_log({}));
    };
    naming_files({{"query", queries}, {"base", base}}, [&] {
      with_rows_from(first, 0, [&] {
        knn_on_parts(shared_knn(of_block, params.k, has_filter(params), std::nullopt, resources), search, out,
                     resources);
      });
    });
    sink(first, out);
  }
}

}  // namespace

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
                  if (is_shared(used)) return search_on_parts(shape, some, all, out, params, used);
                  const SearchRequest request{
                      .k = params.k, .check_finite = params.check_finite, .result_space = out.space};
                  const auto least = [&] { return search_footprint(shape, request, params.filter, used); };
                  within_limits("the search", used, least, [&] {
                    ViewSource query_rows(some);
                    ViewSource base_rows(all);
                    search_knn(shape, request, {query_rows, base_rows, params.filter}, out, used);
                  });
                });
}

void knn(const VectorFile& queries, const VectorFile& base, const NeighborsSink& sink, const KnnParams& params,
         const Resources& resources) {
  const SearchShape shape = check_knn(RowsInfo(queries), RowsInfo(base), params);
  if (!sink) throw InvalidArgument("the search needs a sink for its results");
  warn_of_short_base(queries.rows(), base.rows(), params.k, resources);
  if (is_shared(resources) && shape.queries > 0) return search_on_parts(shape, queries, base, sink, params, resources);
  const SearchRequest request{.k = params.k, .check_finite = params.check_finite, .results_in_memory = false};
  search_files(
      queries, base, resources, [&] { return search_footprint(shape, request, params.filter, resources); },
      [&](RowSource& query_rows, RowSource& base_rows) {
        search_knn(shape, request, {query_rows, base_rows, params.filter}, sink, resources);
      });
}

}  // namespace kith
