#include "exact/product_search_cuda.hpp"

#include "cuda/error.hpp"
#include "kernels/select/select_rows_cuda.hpp"

#include <algorithm>

namespace kith {
void make_operands(Metric metric, OperandType type, const DeviceRowsView& rows, int64_t cols, const OperandsView& to,
                   uint32_t* bad_row, cudaStream_t stream) {
  const OperandTask task{rows, cols, key_kind(metric), type, to.centre, to.facts, to.operands};
  launch_sample(task, stream);
  launch_base_operands(task, {to.terms, bad_row}, stream);
}

ProductSearch::ProductSearch(const KnnProblem& problem, const KnnPlan& plan, const KnnWorkspace& layout,
                             std::byte* workspace, cudaStream_t stream)
    : problem_(problem),
      plan_(plan),
      layout_(layout),
      workspace_(workspace),
      stream_(stream),
      kind_(key_kind(problem.metric)),
      chunks_(operand_chunks(problem.cols, operand_value_bytes(plan.product.operands))) {}

OperandsView ProductSearch::staged_operands() const {
  return {at<std::byte>(layout_.base_operands), at<std::byte>(layout_.base_terms), at<float>(layout_.centre),
          at<BaseFacts>(layout_.base_facts)};
}

void ProductSearch::round_queries(const DeviceRowsView& queries, int64_t first_query, bool check,
                                  const ProductBase& base) const {
  const OperandTask task{queries,
                         problem_.cols,
                         kind_,
                         plan_.product.operands,
                         base.operands.centre,
                         base.operands.facts,
                         at<std::byte>(layout_.query_operands)};
  launch_query_operands(
      task,
      {at<QueryFacts>(layout_.query_facts), check ? &status()->bad_query : nullptr, static_cast<uint32_t>(first_query)},
      stream_);
}

ProductOperands ProductSearch::operands_of(int64_t queries, const ProductBase& base) const {
  return {plan_.product.operands,
          at<std::byte>(layout_.query_operands),
          base.operands.operands,
          base.operands.terms,
          queries,
          base.rows.count,
          chunks_};
}

RerankTask ProductSearch::rerank_task(const DeviceRowsView& queries, const ProductBase& base) const {
  RerankTask task;
  task.kind = kind_;
  task.queries = queries;
  task.base = base.rows;
  task.cols = problem_.cols;
  task.k = problem_.k;
  task.first_row = static_cast<uint32_t>(base.first_row);
  return task;
}

void ProductSearch::select_groups(int64_t queries, int64_t groups) const {
  SelectInput input;
  input.values = at<float>(layout_.minima);
  input.rows = queries;
  input.cols = input.row_stride = groups;
  const SelectProblem problem = problem_of(input, plan_.product.selected, SelectOrder::smallest);
  const SelectPlan plan = plan_select(problem, plan_.product.multiprocessors);
  launch_select_rows(input, {at<float>(layout_.selected), at<int32_t>(layout_.groups), nullptr}, problem, plan,
                     at<std::byte>(layout_.select), stream_);
}

void ProductSearch::search(const DeviceRowsView& queries, int64_t first_query, const ProductBase& base,
                           uint64_t* neighbors) const {
  const ProductPlan& product = plan_.product;
  const int64_t count = queries.count;
  const int64_t groups = group_count(base.rows.count, product.tiles_per_group);
  KITH_CUDA_CHECK(cudaMemsetAsync(failed().count, 0, sizeof(uint32_t), stream_));
  round_queries(queries, first_query, problem_.check_finite, base);
  const ProductOperands operands = operands_of(count, base);
  const ProductSchedule schedule = schedule_product(count, base.rows.count, product.multiprocessors);
  launch_product_minima(product.engine, operands, schedule,
                        {at<float>(layout_.minima), groups, product.tiles_per_group}, stream_);
  select_groups(count, groups);

  WindowTask window;
  window.kind = kind_;
  window.type = product.operands;
  window.cols = problem_.cols;
  window.queries = count;
  window.k = problem_.k;
  window.minima = at<float>(layout_.selected);
  window.selected = product.selected;
  window.groups = groups;
  window.query_facts = at<QueryFacts>(layout_.query_facts);
  window.base_facts = base.operands.facts;
  window.thresholds = at<float>(layout_.thresholds);
  window.key_limits = at<uint32_t>(layout_.key_limits);
  window.group_counts = product.capacity == 0 ? at<int32_t>(layout_.group_counts) : nullptr;
  launch_windows(window, stream_);

  RerankTask rerank = rerank_task(queries, base);
  rerank.key_limits = window.key_limits;
  rerank.neighbors = neighbors;
  if (product.capacity == 0) {
    rerank.group_counts = window.group_counts;
    rerank.groups = at<int32_t>(layout_.groups);
    rerank.group_stride = product.selected;
    rerank.tiles_per_group = product.tiles_per_group;
  } else {
    const ProductCandidates candidates{window.thresholds, at<uint32_t>(layout_.row_counts),
                                       at<uint32_t>(layout_.candidates), product.capacity};
    KITH_CUDA_CHECK(cudaMemsetAsync(candidates.counts, 0, static_cast<size_t>(count) * sizeof(uint32_t), stream_));
    launch_product_candidates(product.engine, operands, schedule, candidates, stream_);
    rerank.row_counts = candidates.counts;
    rerank.rows = candidates.rows;
    rerank.capacity = candidates.capacity;
  }
  launch_rerank(rerank, failed(), stream_);
}

int64_t ProductSearch::search_failed(int64_t count, const DeviceRowsView& queries, const ProductBase& base,
                                     uint64_t* neighbors) const {
  const bool unit = queries.inverse_norms != nullptr;
  int64_t searched_directly = 0;
  for (int64_t first = 0; first < count; first += plan_.query_tile) {
    const int64_t tile = std::min(plan_.query_tile, count - first);
    const GatheredQueries to{at<std::byte>(layout_.failed_rows), unit ? at<double>(layout_.failed_norms) : nullptr,
                             at<float>(layout_.failed_thresholds), at<uint32_t>(layout_.failed_limits)};
    launch_gather_failed(
        failed(),
        {queries, problem_.cols, at<float>(layout_.thresholds), at<uint32_t>(layout_.key_limits), first, tile}, to,
        stream_);
    const DeviceRowsView gathered{to.rows, queries.dtype, problem_.cols, tile, to.inverse_norms};
    auto* const lists = at<uint64_t>(layout_.failed_lists);
    if (plan_.product.retry_capacity == 0) {
      search_directly(gathered, base, {lists, at<uint32_t>(layout_.bounds), tile, problem_.k});
      searched_directly += tile;
    } else {
      const int64_t remaining = try_again(gathered, base);
      const GatheredQueries rest{at<std::byte>(layout_.left_rows), unit ? at<double>(layout_.left_norms) : nullptr};
      launch_gather_failed(left(), {gathered, problem_.cols, nullptr, nullptr, 0, remaining}, rest, stream_);
      const DeviceLists found{at<uint64_t>(layout_.left_lists), at<uint32_t>(layout_.bounds), remaining, problem_.k};
      search_directly({rest.rows, queries.dtype, problem_.cols, remaining, rest.inverse_norms}, base, found);
      launch_scatter_failed(left(), 0, remaining, found.neighbors, problem_.k, lists, stream_);
      searched_directly += remaining;
    }
    launch_scatter_failed(failed(), first, tile, lists, problem_.k, neighbors, stream_);
  }
  return searched_directly;
}

// With the thresholds that the windows gave, into failed_lists; waits, and returns how many queries fail once more.
int64_t ProductSearch::try_again(const DeviceRowsView& queries, const ProductBase& base) const {
  const ProductPlan& product = plan_.product;
  const ProductCandidates candidates{at<float>(layout_.failed_thresholds), at<uint32_t>(layout_.failed_counts),
                                     at<uint32_t>(layout_.failed_candidates), product.retry_capacity};
  KITH_CUDA_CHECK(cudaMemsetAsync(left().count, 0, sizeof(uint32_t), stream_));
  KITH_CUDA_CHECK(
      cudaMemsetAsync(candidates.counts, 0, static_cast<size_t>(queries.count) * sizeof(uint32_t), stream_));
  round_queries(queries, 0, false, base);
  launch_product_candidates(product.engine, operands_of(queries.count, base),
                            schedule_product(queries.count, base.rows.count, product.multiprocessors), candidates,
                            stream_);
  RerankTask rerank = rerank_task(queries, base);
  rerank.key_limits = at<uint32_t>(layout_.failed_limits);
  rerank.row_counts = candidates.counts;
  rerank.rows = candidates.rows;
  rerank.capacity = candidates.capacity;
  rerank.neighbors = at<uint64_t>(layout_.failed_lists);
  launch_rerank(rerank, left(), stream_);
  uint32_t remaining = 0;
  KITH_CUDA_CHECK(cudaMemcpyAsync(&remaining, left().count, sizeof remaining, cudaMemcpyDeviceToHost, stream_));
  KITH_CUDA_CHECK(cudaStreamSynchronize(stream_));
  return remaining;
}

// At most query_tile queries.
void ProductSearch::search_directly(const DeviceRowsView& queries, const ProductBase& base,
                                    const DeviceLists& lists) const {
  if (queries.count == 0) return;
  auto* const keys = at<uint32_t>(layout_.keys);
  const size_t list_bytes = static_cast<size_t>(lists.queries * lists.k) * sizeof(uint64_t);
  KITH_CUDA_CHECK(cudaMemsetAsync(lists.neighbors, 0xFF, list_bytes, stream_));
  for (int64_t row = 0; row < base.rows.count; row += plan_.row_tile) {
    const DeviceRowsView part = slice_rows(base.rows, row, std::min(plan_.row_tile, base.rows.count - row));
    launch_distance(problem_.metric, queries, part, problem_.cols, keys, plan_.row_tile, stream_);
    launch_select(lists, {keys, plan_.row_tile, part.count, base.first_row + row}, row, stream_);
  }
  launch_sort(lists, base.rows.count, stream_);
}

}  // namespace kith
