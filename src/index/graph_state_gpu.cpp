// Searches of a graph index on a GPU: the first one copies graph and rows there, for all later ones; queries that walks
// do not answer are searched exactly.
#include <kith/index.hpp>

#include "core/within_limits.hpp"
#include "index/factory.hpp"
#include "index/graph_state.hpp"
#include "index/search_some.hpp"
#include "rows/finite_check.hpp"
#include "rows/host_rows.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace kith {

// Rows of a file are read as one array: what is on the host and is looked at there.
void GraphState::refuse_bad_queries(const MatrixView& queries, const Resources& resources) const {
  if (counts_only(resources)) return;
  const bool chi_square = params_.metric == Metric::chi_square;
  if (!params_.check_finite && !chi_square) return;
  const HostRows rows(queries, resources);
  if (params_.check_finite) refuse_not_finite("query", rows.view(), {0}, resources);
  if (chi_square) refuse_negative("query", rows.view(), {0}, resources);
}

std::shared_ptr<const WalkGraphOnGpu> GraphState::graph_on_gpu(int device, const Resources& resources) const {
  const Device there = Device::cuda(device);
  const auto suits = [&](const WalkGraphOnGpu& copy) { return copy.source == front_.graph; };
  if (auto found = front_.on_gpus->find(there, suits)) return found;
  auto made = std::make_shared<const WalkGraphOnGpu>(front_.graph, device, resources);
  return counts_only(resources) ? made : front_.on_gpus->keep(there, std::move(made), suits);
}

std::shared_ptr<const GraphRowsOnGpu> GraphState::rows_on_gpu(int device, const Resources& resources) const {
  return front_.rows_on_gpus->get(Device::cuda(device), resources, [&] {
    GraphRowsOnGpu::Contents contents;
    contents.format = vectors_->format();
    contents.codec = vectors_->codec();
    contents.rows = content().rows;
    contents.tail = front_.tail.data();
    contents.tail_bytes = front_.tail.size();
    auto made = std::make_shared<GraphRowsOnGpu>(contents, device, resources,
                                                 [&](std::byte* to) { vectors_->copy_to_gpu(to, device, resources); });
    if (contents.codec != nullptr) return std::shared_ptr<const GraphRowsOnGpu>(std::move(made));
    // Rows were looked at when they were added; queries are before they are searched.
    IndexParams behind = params_;
    behind.prepare = false;
    behind.check_finite = false;
    const MatrixView rows(made->vectors.data(), contents.format.dtype,
                          {contents.rows, contents.format.cols, contents.format.cols}, MemorySpace::cuda(device));
    made->exact = make_flat(behind)->added(nullptr, rows, Ownership::borrow, resources);
    return std::shared_ptr<const GraphRowsOnGpu>(std::move(made));
  });
}

SharedState GraphState::exact_on_gpu(int device, const Resources& resources) const {
  const std::shared_ptr<const GraphRowsOnGpu> rows = rows_on_gpu(device, resources);
  if (rows->exact == nullptr) return store_;
  return {rows, rows->exact.get()};
}

bool GraphState::search_on_gpu(int device, const MatrixView& queries, const NeighborsView& out,
                               const SearchParams& params, const Resources& resources) const {
  KeptRows kept(params.filter, content().rows, resources);
  const GraphPlan plan = plan_graph_search(search_of(params, kept.count()));
  const int64_t places = front_.graph == nullptr ? 0 : front_.graph->order.places();
  const bool walks = !plan.exact;
  if (walks && !suits_gpu_walk(front_.graph->coder, plan, places, degree_, params.k)) {
    resources.log(LogLevel::info, "the graph is walked on the CPU: by this metric, or with so wide a beam");
    return false;
  }
  if (counts_only(resources)) {
    count_search_on_gpu(device, queries, out, params, resources);
    return true;
  }
  if (!walks) {
    refuse_bad_queries(queries, resources);
    exact_on_gpu(device, resources)->search(queries, out, {.k = params.k, .filter = params.filter}, resources);
    return true;
  }
  if (kept.leaves_some_out()) kept.bits(resources);
  return walk_on_gpu(plan, {queries, params.filter}, out, kept, resources);
}

bool GraphState::walk_on_gpu(const GraphPlan& plan, const Asked& asked, const NeighborsView& out, const KeptRows& kept,
                             const Resources& resources) const {
  if (!suits_gpu_walk(front_.graph->coder, plan, front_.graph->order.places(), degree_, out.k)) return false;
  const int device = resources.device().index;
  const std::shared_ptr<const WalkGraphOnGpu> graph = graph_on_gpu(device, resources);
  const std::shared_ptr<const GraphRowsOnGpu> rows = rows_on_gpu(device, resources);
  GpuGraphSearch search{*graph, *rows, plan, params_.metric, params_.check_finite, nullptr};
  if (kept.leaves_some_out()) search.kept = kept.bits();
  search.stored = content().rows;
  search.kept_rows = kept.count();
  search.hidden = asked.hidden;
  QueriesLeft left = search_graph_on_gpu(device, search, asked.queries, out, resources);
  const GraphPlan wider = wider_plan(plan, kept.count(), shape());
  if (wider.exact) left.search_all_exactly();
  if (left.exact.empty() && left.wider.empty()) return true;
  const HostRows on_host(asked.queries, resources);
  if (!left.exact.empty()) {
    search_exactly(*exact_on_gpu(device, resources), left.exact, on_host.view(), out, asked.filter, resources);
  }
  if (left.wider.empty()) return true;
  search_some(left.wider, on_host.view(), out, resources,
              [&](const MatrixView& some, const NeighborsView& part, int64_t) {
                if (walk_on_gpu(wider, {some, asked.filter}, part, kept, resources)) return;
                walk(wider, {some, asked.filter}, part, kept, resources.with_device(Device::cpu()));
              });
  return true;
}

// The maximum over all cases, as in count_search().
void GraphState::count_search_on_gpu(int device, const MatrixView& queries, const NeighborsView& out,
                                     const SearchParams& params, const Resources& resources) const {
  const SearchParams exact{.k = params.k, .filter = params.filter};
  const SharedState state = exact_on_gpu(device, resources);
  const std::shared_ptr<const GraphRowsOnGpu> rows = rows_on_gpu(device, resources);
  const Footprint whole =
      footprint_of_call(resources, [&](const Resources& used) { state->search(queries, out, exact, used); });
  const GraphSearch search = search_of(params, content().rows);
  if (search.graph.degree == 0) return count_work(whole, resources);
  const std::shared_ptr<const WalkGraphOnGpu> graph = graph_on_gpu(device, resources);
  const Footprint walks = footprint_of_call(resources, [&](const Resources& used) {
    GraphPlan plan = plan_graph_search(search);
    const bool filtered = params.filter.form() != RowFilter::Form::none;
    if (plan.exact && !filtered) return;
    if (filtered) plan.walk = widest_walk(search);
    plan.candidates = search.candidates();
    const uint64_t some_bits = 0;
    GpuGraphSearch counted{*graph, *rows, plan, params_.metric, params_.check_finite, filtered ? &some_bits : nullptr};
    counted.stored = content().rows;
    (void)search_graph_on_gpu(device, counted, queries, out, used);
  });
  const Footprint left = footprint_of_call(resources, [&](const Resources& used) {
    const HostRows on_host(queries, used);
    std::vector<std::unique_ptr<SomeQueries>> again;
    for (int64_t i = most_widenings(search) + 1; i > 0; --i) {
      again.push_back(std::make_unique<SomeQueries>(queries.dtype(), queries.cols(), params.k, queries.rows(), used));
    }
    state->search(again.back()->queries.view(), again.back()->found.view(), exact, used);
  });
  // If a filter needs a beam that does not fit in a block's memory, the CPU walks.
  GraphPlan widest;
  widest.walk = widest_walk(search);
  widest.candidates = search.candidates();
  const bool may_leave =
      params.filter.form() != RowFilter::Form::none &&
      !suits_gpu_walk(front_.graph->coder, widest, front_.graph->order.places(), degree_, params.k);
  const Footprint on_cpu = !may_leave ? Footprint() : footprint_of_call(resources, [&](const Resources& used) {
    count_search(queries, out, params, used.with_device(Device::cpu()));
  });
  count_work(whole.then(walks).then(left).then(on_cpu), resources);
}

}  // namespace kith
