#include "graph/build/ggm/ggm_shards.hpp"

#include "core/divide.hpp"
#include "core/within_limits.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/handle/graph_output.hpp"
#include "ranks/parts.hpp"
#include "ranks/transfer.hpp"
#include "rows/finite_check.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace kith {
namespace {

// Two shards whose working lists have so many neighbours together take some 20 GB beside their vectors.
constexpr int64_t kListedInAShard = 160'000'000;

}  // namespace

GgmShards::GgmShards(int64_t all_rows, const KnnGraphParams& params) : rows(all_rows) {
  const int64_t length = params.list_length.value_or(default_list_length(params.k));
  const int64_t usual = divide_up(rows, std::max<int64_t>(1, kListedInAShard / length));
  count = std::clamp<int64_t>(params.shards.value_or(usual), 1, std::max<int64_t>(1, rows));
}

KnnGraphParams shard_params(const KnnGraphParams& params) {
  KnnGraphParams shard = params;
  shard.method = GraphMethod::nn_descent;
  shard.shards.reset();
  return shard;
}

GraphMergeParams shard_merge_params(const KnnGraphParams& params) {
  return {.recall = params.recall,
          .seed = params.seed,
          .samples = params.samples,
          .list_length = params.list_length,
          .iterations = params.iterations,
          .delta = params.delta,
          .check_finite = false};
}

void put_ggm(const KnnGraphParams& params, const GgmShards& shards, GraphReport& report) {
  report.method = name_of(GraphMethod::ggm);
  report.parameters = {
      {"recall", params.recall}, {"seed", static_cast<int64_t>(params.seed)}, {"shards", shards.count}};
}

GraphReport ggm_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                      const Resources& resources) {
  const GgmShards shards(x.rows(), params);
  GraphReport report;
  if (shards.count == 1) {
    call_or_count(resources, [&](const Resources& used) { report = knn_graph(x, out, shard_params(params), used); });
    put_ggm(params, shards, report);
    return report;
  }
  std::vector<std::unique_ptr<const GraphOutput>> graphs;
  for (int64_t shard = 0; shard < shards.count; ++shard) {
    graphs.push_back(
        std::make_unique<const GraphOutput>(GraphOutputShape{shards.size(shard), params.k, out.space}, resources));
  }
  std::vector<GraphReport> told(graphs.size());
  const auto make = [&](int64_t shard, const Resources& part) {
    const auto at = static_cast<size_t>(shard);
    const MatrixView rows = x.slice(shards.first(shard), shards.size(shard));
    call_or_count(part, [&](const Resources& used) {
      naming_rows("base", [&] { told[at] = knn_graph(rows, graphs[at]->view(), shard_params(params), used); },
                  shards.first(shard));
    });
    if (!out.space.host_readable()) wait_for_stream(out.space.device, part);
  };
  const Resources devices = all_parts_or_first("graphs of shards", resources, [&](const Resources& part) {
    return footprint_of_call(part, [&](const Resources& counting) { make(0, counting); });
  });
  if (is_shared(devices)) wait_for_caller(devices, x.space(), out.space);
  deal_steps(shards.count, devices, make);
  std::vector<GraphPart> parts;
  for (int64_t shard = 0; shard < shards.count; ++shard) {
    const auto at = static_cast<size_t>(shard);
    parts.push_back({graphs[at]->graph(params.metric, std::move(told[at])),
                     x.slice(shards.first(shard), shards.size(shard))});
  }
  call_or_count(resources,
                [&](const Resources& used) { report = merge_graphs(parts, out, shard_merge_params(params), used); });
  put_ggm(params, shards, report);
  return report;
}

}  // namespace kith
