#include <kith/graph_of_files.hpp>

#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/handle/graph_folder.hpp"
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
      const ReadMemory chunks = x.reserve_memory(used);
      const MatrixBuffer counted(x.dtype(), x.rows(), x.cols(), "the vectors", used);
      return build(counted.view(), used);
    }
    const MatrixBuffer rows = read_rows(x, {}, x.dtype(), used);
    return naming_files({{"x", x}}, [&] { return build(rows.view(), used); });
  });
}

bool is_exact(const KnnGraphParams& params) { return params.method == GraphMethod::exact || params.recall == 1; }

bool fits_in_memory(const VectorFile& x, const KnnGraphParams& params, const Resources& resources) {
  if (!counts_memory(resources)) return true;
  const auto call = [&](const Resources& counting) { (void)knn_graph(x, params, counting); };
  return has_room_for(footprint_of_call(resources, call), resources);
}

// Every row is searched among all, in pieces of the files, and what is found is written at once.
void write_exact(const VectorFile& x, GraphFolderWriter& writer, const KnnGraphParams& params,
                 const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  const SearchShape shape = check_knn(RowsInfo(x), RowsInfo(x), {params.k, params.metric});
  const SearchWish wish{
      .k = params.k, .without_self = true, .check_finite = params.check_finite, .results_in_memory = false};
  const auto search = [&](RowSource& queries, RowSource& base) {
    search_knn(
        shape, wish, {queries, base, RowFilter()}, [&](int64_t, const NeighborsView& part) { writer.append(part); },
        resources);
  };
  const auto least = [&] { return search_footprint(shape, wish, RowFilter(), resources); };
  naming_files({{"x", x}}, [&] {
    naming_rows("x", [&] { search_files(x, x, resources, least, search); });
  });
}

}  // namespace

GraphReport knn_graph_folder(const VectorFile& x, const std::string& folder, const KnnGraphParams& params,
                             const Resources& resources) {
  params.validate();
  check_search(RowsInfo(x), RowsInfo(x), params.metric);
  if (!is_exact(params) || fits_in_memory(x, params, resources)) {
    const KnnGraph graph = knn_graph(x, params, resources);
    save_graph_folder(graph, folder, resources);
    return graph.report();
  }
  GraphFolderWriter writer(folder, x.rows(), params.k);
  const GraphReport report = measured(resources, [&](const Resources& counted) {
    write_exact(x, writer, params, counted);
    GraphReport exact;
    exact.method = name_of(GraphMethod::exact);
    exact.recall = exact_recall(x.rows());
    return exact;
  });
  writer.finish(params.metric, report);
  return report;
}

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
