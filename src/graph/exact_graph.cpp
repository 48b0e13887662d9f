#include "graph/exact_graph.hpp"

#include <kith/error.hpp>

#include "exact/exact_search.hpp"
#include "exact/knn_checks.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

// Takes batches of k + 1 neighbours and writes k, without the row itself.
class WithoutSelf final : public KnnOutput {
 public:
  explicit WithoutSelf(const NeighborsView& out) : out_(out) {}

  void open(int64_t batch, const Resources& resources) override { part_ = Neighbors(batch, out_.k + 1, resources); }
  NeighborsView destination(int64_t, int64_t count) override {
    NeighborsView view = part_.view();
    view.queries = count;
    return view;
  }
  void done(int64_t first, const NeighborsView& part) override {
    for (int64_t q = 0; q < part.queries; ++q) {
      const int64_t* ids = part.ids + q * part.k;
      const float* distances = part.distances + q * part.k;
      int64_t to = (first + q) * out_.k;
      const int64_t end = to + out_.k;
      for (int64_t i = 0; to < end; ++i) {
        if (ids[i] == first + q) continue;
        out_.ids[to] = ids[i];
        out_.distances[to++] = distances[i];
      }
    }
  }

 private:
  NeighborsView out_;
  Neighbors part_;
};

}  // namespace

void check_graph_size(int64_t rows, int64_t k) {
  check_result_size(rows, k);  // k + 1, which is looked for, can be counted then
}

void exact_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                 const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  KnnProblem problem = check_knn(RowsInfo(x), RowsInfo(x), {params.k + 1, params.metric, params.check_finite});
  problem.results_in_memory = false;  // k + 1 of them go through a batch
  check_output(out, x.rows(), params.k);
  if (!out.space.host_readable()) {
    throw Unsupported(
        fmt::format("the graph's arrays lie in the memory of cuda:{}; give arrays in host memory", out.space.device));
  }
  ViewSource queries(x);
  BlocksBase base(x);
  WithoutSelf output(out);
  search_knn(problem, {queries, base, RowFilter()}, output, resources);
}

}  // namespace kith
