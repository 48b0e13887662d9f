#include "exact/product_search_cuda.hpp"

#include "cuda/error.hpp"
#include "kernels/product/product_cuda.hpp"
#include "kernels/select/select_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"

#include <algorithm>
#include <cstddef>

namespace kith {
namespace {

DeviceRowsView slice(const DeviceRowsView& rows, int64_t first, int64_t count) {
  DeviceRowsView part = rows;
  part.data = static_cast<const std::byte*>(rows.data) + first * rows.stride * size_of(rows.dtype);
  part.count = count;
  if (rows.inverse_norms != nullptr) part.inverse_norms = rows.inverse_norms + first;
  return part;
}

}  // namespace

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

FailedQueries ProductSearch::failed() const {
  return {at<uint32_t>(layout_.status + static_cast<int64_t>(offsetof(KnnStatus, failed))),
          at<uint32_t>(layout_.failed)};
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
  launch_query_operands({queries, problem_.cols, kind_, product.operands, base.operands.centre, base.operands.facts,
                         at<std::byte>(layout_.query_operands)},
                        {at<QueryFacts>(layout_.query_facts),
                         problem_.check_finite ? &at<KnnStatus>(layout_.status)->bad_query : nullptr,
                         static_cast<uint32_t>(first_query)},
                        stream_);

  const ProductOperands operands{product.operands,       at<std::byte>(layout_.query_operands),
                                 base.operands.operands, base.operands.terms,
                                 count,                  base.rows.count,
                                 chunks_};
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

  RerankTask rerank;
  rerank.kind = kind_;
  rerank.queries = queries;
  rerank.base = base.rows;
  rerank.cols = problem_.cols;
  rerank.k = problem_.k;
  rerank.first_row = static_cast<uint32_t>(base.first_row);
  rerank.key_limits = window.key_limits;
  rerank.group_counts = window.group_counts;
  rerank.groups = at<int32_t>(layout_.groups);
  rerank.group_stride = product.selected;
  rerank.tiles_per_group = product.tiles_per_group;
  rerank.neighbors = neighbors;
  if (product.capacity > 0) {
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

void ProductSearch::search_failed(int64_t count, const DeviceRowsView& queries, const ProductBase& base,
                                  uint64_t* neighbors) const {
  double* const norms = queries.inverse_norms != nullptr ? at<double>(layout_.failed_norms) : nullptr;
  auto* const keys = at<uint32_t>(layout_.keys);
  for (int64_t first = 0; first < count; first += plan_.query_tile) {
    const int64_t tile = std::min(plan_.query_tile, count - first);
    launch_gather_failed(failed(), first, tile, queries, problem_.cols, at<std::byte>(layout_.failed_rows), norms,
                         stream_);
    const DeviceRowsView gathered{at<std::byte>(layout_.failed_rows), queries.dtype, problem_.cols, tile, norms};
    const DeviceLists lists{at<uint64_t>(layout_.failed_lists), at<uint32_t>(layout_.bounds), tile, problem_.k};
    KITH_CUDA_CHECK(
        cudaMemsetAsync(lists.neighbors, 0xFF, static_cast<size_t>(tile * problem_.k) * sizeof(uint64_t), stream_));
    for (int64_t row = 0; row < base.rows.count; row += plan_.row_tile) {
      const DeviceRowsView part = slice(base.rows, row, std::min(plan_.row_tile, base.rows.count - row));
      launch_distance(problem_.metric, gathered, part, problem_.cols, keys, plan_.row_tile, stream_);
      launch_select(lists, {keys, plan_.row_tile, part.count, base.first_row + row}, row, stream_);
    }
    launch_sort(lists, base.rows.count, stream_);
    launch_scatter_failed(failed(), first, tile, lists.neighbors, problem_.k, neighbors, stream_);
  }
}

}  // namespace kith
