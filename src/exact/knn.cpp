#include <kith/knn.hpp>

#include <kith/error.hpp>

#include "exact/knn_checks.hpp"
#include "exact/knn_loop.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {

void KnnParams::validate() const {
  if (name_of(metric) == "?") throw InvalidArgument(fmt::format("metric {} is none", static_cast<int>(metric)));
  if (k < 1) throw InvalidArgument(fmt::format("k = {}; at least one neighbour must be asked for", k));
}

Neighbors knn(const MatrixView& queries, const MatrixView& base, const KnnParams& params, const Resources& resources) {
  check_knn({queries.rows(), queries.cols(), queries.dtype()}, {base.rows(), base.cols(), base.dtype()}, params);
  Neighbors result(queries.rows(), params.k, resources);
  knn(queries, base, result.view(), params, resources);
  return result;
}

void knn(const MatrixView& queries, const MatrixView& base, const NeighborsView& out, const KnnParams& params,
         const Resources& resources) {
  KnnProblem problem =
      check_knn({queries.rows(), queries.cols(), queries.dtype()}, {base.rows(), base.cols(), base.dtype()}, params);
  check_output(out, queries.rows(), params.k);
  problem.results_on_device = !out.space.host_readable();
  if (!problem.results_on_device && pad_when_empty(problem, out)) return;
  const Device device = resolve_device(problem, resources, {queries.space(), base.space(), out.space});
  const PlannedKnn planned = plan_knn(problem, device, resources);
  ViewSource query_rows(queries);
  ViewSource base_rows(base);
  run_knn(problem, planned, query_rows, {{&base_rows, nullptr}}, whole_output(out));
}

void knn(const VectorFile& queries, const VectorFile& base, const NeighborsSink& sink, const KnnParams& params,
         const Resources& resources) {
  KnnProblem problem =
      check_knn({queries.rows(), queries.cols(), queries.dtype()}, {base.rows(), base.cols(), base.dtype()}, params);
  if (!sink) throw InvalidArgument("the search needs a sink for its results");
  problem.queries_in_memory = problem.base_in_memory = problem.results_in_memory = false;
  if (problem.queries == 0) return;
  if (problem.rows == 0) {
    Neighbors nothing(1, params.k, resources);
    pad_when_empty(problem, nothing.view());
    for (int64_t query = 0; query < problem.queries; ++query) sink(query, nothing.view());
    return;
  }
  const PlannedKnn planned = plan_knn(problem, resolve_device(problem, resources), resources);
  FileSource query_rows(queries, planned.plan.query_batch, planned.resources());
  FileSource base_rows(base, planned.plan.base_chunk, planned.resources());
  Neighbors part(planned.plan.query_batch, params.k, planned.resources());
  const KnnOutput output{[&](int64_t, int64_t count) {
                           NeighborsView view = part.view();
                           view.queries = count;
                           return view;
                         },
                         sink};
  run_knn(problem, planned, query_rows, {{&base_rows, nullptr}}, output);
}

}  // namespace kith
