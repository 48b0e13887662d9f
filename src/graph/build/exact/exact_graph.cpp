#include "graph/build/exact/exact_graph.hpp"

#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"

namespace kith {

void check_graph_size(int64_t rows, int64_t k) {
  check_result_size(rows, k);  // k + 1, which is looked for, can be counted then
}

void exact_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                 const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  const SearchShape shape = check_knn(RowsInfo(x), RowsInfo(x), {params.k, params.metric});
  check_output(out, x.rows(), params.k);
  const SearchWish wish{
      .k = params.k, .without_self = true, .check_finite = params.check_finite, .result_space = out.space};
  if (only_counts(resources)) return count_work(search_footprint(shape, wish, RowFilter(), resources), resources);
  ViewSource queries(x);
  ViewSource base(x);
  search_knn(shape, wish, {queries, base, RowFilter()}, out, resources);
}

}  // namespace kith
