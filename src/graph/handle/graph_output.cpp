#include "graph/handle/graph_output.hpp"

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_memory.hpp"
#include "graph/handle/graph_access.hpp"
#include "ranks/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

template <typename T>
void copy_array(const T* from, T* to, const NeighborsView& source, const NeighborsView& target,
                const Resources& resources) {
  const int64_t count = source.queries * source.k;
  if (!target.space.host_readable()) {
    transfer(from, source.space, array_bytes<T>(count), to, target.space, resources);
  } else if (source.space.host_readable()) {
    std::copy_n(from, count, to);
  } else {
    copy_to_host(from, array_bytes<T>(count), source.space.device, to);
  }
}

}  // namespace

GraphOutput::GraphOutput(const GraphOutputShape& shape, const Resources& resources) : resources_(resources) {
  if (shape.space.host_readable()) {
    const auto kept = std::make_shared<Neighbors>(shape.rows, shape.k, resources);
    view_ = kept->view();
    owner_ = kept;
    return;
  }
  const auto memory = allocate_on_device(shape.bytes(), "the graph", shape.space.device, resources);
  auto* const ids = reinterpret_cast<int64_t*>(memory.get());
  auto* const distances = reinterpret_cast<float*>(ids + shape.rows * shape.k);
  view_ = {ids, distances, shape.rows, shape.k, shape.space};
  owner_ = memory;
}

GraphOutput::~GraphOutput() {
  if (view_.space.host_readable()) return;
  try {
    wait_for_stream(view_.space.device, resources_);
  } catch (const Error&) {  // of the device: whoever waited before has told it
  }
}

KnnGraph GraphOutput::graph(Metric metric, GraphReport report) const {
  return GraphAccess::make(view_, owner_, metric, std::move(report));
}

KnnGraph graph_in(MemorySpace space, const KnnGraph& graph, const Resources& resources) {
  if (space == graph.space() || (space.host_readable() && graph.space().host_readable())) return graph;
  const GraphOutput copy({graph.rows(), graph.k(), space}, resources);
  copy_neighbors(GraphAccess::view(graph), copy.view(), resources);
  return copy.graph(graph.metric(), graph.report());
}

void copy_neighbors(const NeighborsView& from, const NeighborsView& to, const Resources& resources) {
  if (from.queries * from.k == 0 || counts_only(resources)) return;
  const Resources quiet = resources.with_progress({});
  copy_array(from.ids, to.ids, from, to, quiet);
  copy_array(from.distances, to.distances, from, to, quiet);
}

void put_outcome(const BuildOutcome& outcome, int64_t control_rows, GraphReport& report) {
  report.rounds = outcome.rounds;
  report.reached = outcome.reached;
  if (outcome.recall) {
    report.recall = GraphRecall{.recall = outcome.recall->recall,
                                .recall_at_10 = outcome.recall->recall_at_10,
                                .standard_error = outcome.recall->error,
                                .rows = control_rows};
  }
}

void warn_if_missed(const GraphReport& report, double wanted, std::string_view advice, const Resources& resources) {
  if (report.reached || !report.recall) return;
  resources.log(LogLevel::warning,
                fmt::format("the graph's recall is about {:.4f} (standard error {:.4f}), below the {} asked for; {}",
                            report.recall->recall, report.recall->standard_error, wanted, advice));
}

}  // namespace kith
