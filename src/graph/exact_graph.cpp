#include "graph/exact_graph.hpp"

#include "exact/exact_search.hpp"
#include "exact/knn_checks.hpp"
#include "exact/knn_output.hpp"

namespace kith {

void check_graph_size(int64_t rows, int64_t k) {
  check_result_size(rows, k);  // k + 1, which is looked for, can be counted then
}

void exact_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                 const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  KnnProblem problem = check_knn(RowsInfo(x), RowsInfo(x), {params.k + 1, params.metric, params.check_finite});
  problem.result_k = params.k;
  problem.without_self = true;
  problem.result_space = out.space;
  check_output(out, x.rows(), params.k);
  ViewSource queries(x);
  BlocksBase base(x);
  ArrayOutput output(out);
  search_knn(problem, {queries, base, RowFilter()}, output, resources);
}

}  // namespace kith
