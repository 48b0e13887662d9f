#include <kith/graph_of_files.hpp>

#include "core/within_limits.hpp"
#include "exact/search_checks.hpp"
#include "graph/handle/graph_output.hpp"
#include "io/read_rows.hpp"
#include "rows/naming_files.hpp"

namespace kith {
namespace {

// build(rows, resources) with all rows of the files in memory.
template <typename Build>
auto with_rows(const VectorFile& x, const KnnGraphParams& params, const Resources& resources, const Build& build) {
  params.validate();
  check_search(RowsInfo(x), RowsInfo(x), params.metric);
  return within_limits("the graph", resources, [&](const Resources& used) {
    if (only_counts(used)) {
      const MatrixBuffer counted(x.dtype(), x.rows(), x.cols(), "the vectors", used);
      return build(counted.view(), used);
    }
    const MatrixBuffer rows = read_rows(x, {}, x.dtype(), used);
    return naming_files({{"x", x}}, [&] { return build(rows.view(), used); });
  });
}

}  // namespace

KnnGraph knn_graph(const VectorFile& x, const KnnGraphParams& params, const Resources& resources) {
  return with_rows(x, params, resources,
                   [&](const MatrixView& rows, const Resources& used) { return knn_graph(rows, params, used); });
}

GraphReport knn_graph(const VectorFile& x, const NeighborsView& out, const KnnGraphParams& params,
                      const Resources& resources) {
  return with_rows(x, params, resources,
                   [&](const MatrixView& rows, const Resources& used) { return knn_graph(rows, out, params, used); });
}

}  // namespace kith
