// Exact search by a user's metric on a GPU: the direct engine with keys from the user's kernel. Plan, filters, copies,
// selection, progress and cancellation are those of every exact search.
#include <kith/custom_metric_cuda.hpp>

#include "core/within_limits.hpp"
#include "exact/custom_device.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"

namespace kith::custom {

Neighbors knn_cuda(const TileMetric& metric, const MatrixView& queries, const MatrixView& base,
                   const CustomKnnParams& params, const Resources& resources) {
  const Device device = custom_device({queries.space(), base.space()}, resources, "knn_by_cuda", "knn_by");
  // Its keys are their own unit, the smaller the nearer, as those of l2 are.
  const SearchShape shape = check_knn(RowsInfo(queries), RowsInfo(base), {params.k, Metric::l2});
  refuse_f64("queries", queries.dtype());
  refuse_f64("base vectors", base.dtype());
  const SearchRequest request{.k = params.k, .given_keys = true, .check_finite = params.check_finite};
  const Resources there = resources.with_device(device);
  const auto least = [&] {
    return footprint_of<Neighbors>(there, queries.rows(), params.k)
        .beside(search_footprint(shape, request, params.filter, there));
  };
  return within_limits("the search", there, least, [&] {
    Neighbors result(queries.rows(), params.k, there);
    ViewSource query_rows(queries);
    ViewSource base_rows(base);
    search_knn(shape, request, {query_rows, base_rows, params.filter, nullptr, &metric}, result.view(), there);
    return result;
  });
}

}  // namespace kith::custom
