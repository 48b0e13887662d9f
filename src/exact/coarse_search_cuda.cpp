// The coarse path of the product engine (coarse_plan_cuda.hpp): five launches, nothing in between that waits.
#include "cuda/error.hpp"
#include "exact/coarse_plan_cuda.hpp"
#include "exact/product_search_cuda.hpp"
#include "kernels/select/kth_windows_cuda.hpp"

namespace kith {

void ProductSearch::search_coarse(const DeviceRowsView& queries, int64_t first_query, const ProductBase& base,
                                  uint64_t* neighbors) const {
  const ProductPlan& product = plan_.product;
  const int each = product.rows_per_minimum;
  const int64_t count = queries.count;
  auto* const minima = at<float>(layout_.minima);
  KITH_CUDA_CHECK(cudaMemsetAsync(failed().count, 0, sizeof(uint32_t), stream_));
  round_queries(queries, first_query, task_.wish.check_finite, base);
  const ProductOperands operands = operands_of(count, base);
  const ProductSchedule schedule = schedule_product(count, base.rows.count, product.multiprocessors);
  const int64_t groups = part_count(base.rows.count, each);
  if (each >= kGroupRowsPerTile) {
    launch_product_minima(product.engine, operands, schedule, {minima, groups, each / kGroupRowsPerTile}, stream_);
  } else {
    launch_product_parts(product.engine, operands, schedule, {minima, each}, stream_);
  }

  KnnWindowTask window;
  window.kind = kind_;
  window.type = product.operands;
  window.cols = task_.shape.cols;
  window.queries = count;
  window.k = task_.scope.k;
  window.minima = minima;
  window.groups = groups;
  window.query_facts = at<QueryFacts>(layout_.query_facts);
  window.base_facts = base.operands.facts;
  window.thresholds = at<float>(layout_.thresholds);
  window.key_limits = at<uint32_t>(layout_.key_limits);
  launch_kth_windows(window, stream_);

  auto* const marks = at<uint32_t>(layout_.marks);
  launch_product_marks(product.engine, operands, schedule, {window.thresholds, marks}, stream_);
  RerankTask rerank = rerank_task(queries, base);
  rerank.key_limits = window.key_limits;
  rerank.marks = marks;
  rerank.room = product.room;
  rerank.neighbors = neighbors;
  launch_rerank(rerank, failed(), stream_);
}

}  // namespace kith
