#include "graph/build/exact/exact_graph.hpp"

#include <kith/knn.hpp>

#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/knn_on_parts.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "graph/build/exact/without_self.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/lists/graph_share.hpp"
#include "ranks/parts.hpp"
#include "ranks/transfer.hpp"

#include <algorithm>

namespace kith {

void check_graph_size(int64_t rows, int64_t k) {
  check_result_size(rows, k);  // k + 1, which is looked for, can be counted then
}

namespace {

// The same in the memory of a GPU, some rows at a time.
void search_rows_there(const MatrixView& x, const RankPart& rows, const NeighborsView& out, const KnnParams& wanted,
                       const Resources& resources) {
  constexpr int64_t kFoundBytes = int64_t{64} << 20;
  const int64_t batch = std::clamp<int64_t>(kFoundBytes / GraphOutputShape{1, wanted.k}.bytes(), 1, rows.count);
  const GraphOutput memory({batch, wanted.k, out.space}, resources);
  for (int64_t first = rows.first; first < rows.end(); first += batch) {
    NeighborsView found = memory.view();
    found.queries = std::min(batch, rows.end() - first);
    with_rows_from(first, 0, [&] { knn(x.slice(first, found.queries), x, found, wanted, resources.with_log({})); });
    put_without_self_cuda(found, first, out, resources);
  }
}

// The neighbours of some rows, to their places in `out`.
void search_rows(const MatrixView& x, const RankPart& rows, const NeighborsView& out, const KnnGraphParams& params,
                 const Resources& resources) {
  const KnnParams wanted{.k = params.k + 1, .metric = params.metric, .check_finite = params.check_finite};
  if (!out.space.host_readable()) return search_rows_there(x, rows, out, wanted, resources);
  with_rows_from(rows.first, 0, [&] {
    put_without_self(knn(x.slice(rows.first, rows.count), x, wanted, resources.with_log({})), rows.first, out);
  });
}

// Each part searches all rows for its own.
void exact_graph_on_parts(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                          const Resources& resources) {
  share_out(x.rows(), 1, resources,
            [&](RankPart share, const Resources& part) { search_rows(x, share, out, params, part); });
}

}  // namespace

void exact_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                 const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  const SearchShape shape = check_knn(RowsInfo(x), RowsInfo(x), {params.k, params.metric});
  check_output(out, x.rows(), params.k);
  const SearchRequest request{
      .k = params.k, .without_self = true, .check_finite = params.check_finite, .result_space = out.space};
  if (counts_only(resources)) return count_work(search_footprint(shape, request, RowFilter(), resources), resources);
  if (is_divided(x.space(), resources) && is_divided(out.space, resources)) {
    wait_for_caller(resources, x.space(), out.space);
    return exact_graph_on_parts(x, out, params, resources);
  }
  ViewSource queries(x);
  ViewSource base(x);
  search_knn(shape, request, {queries, base, RowFilter()}, out, resources);
}

void exact_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params, const GraphShare& share,
                 const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  (void)check_knn(RowsInfo(x), RowsInfo(x), {params.k, params.metric});
  check_output(out, x.rows(), params.k);
  if (share.rows().count > 0) search_rows(x, share.rows(), out, params, resources);
  if (share.are_parts()) return;  // they have filled one graph
  share.give(out.ids, out.k);
  share.give(out.distances, out.k);
}

}  // namespace kith
