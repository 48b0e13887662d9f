// The coarse path of the product engine, for few rows and many queries (kernels/rerank/coarse_knn_cuda.hpp).
#include "exact/product_search_cuda.hpp"

#include "cuda/error.hpp"
#include "kernels/rerank/coarse_knn_cuda.hpp"

namespace kith {

void ProductSearch::search_coarse(const DeviceRowsView& queries, int64_t first_query, const ProductBase& base,
                                  uint64_t* neighbors) const {
  KITH_CUDA_CHECK(cudaMemsetAsync(failed().count, 0, sizeof(uint32_t), stream_));
  round_queries(queries, first_query, task_.wish.check_finite, base);
  CoarseKnnTask task;
  task.engine = plan_.product.engine;
  task.multiprocessors = plan_.product.multiprocessors;
  task.operands = operands_of(queries.count, base);
  task.query_facts = at<QueryFacts>(layout_.query_facts);
  task.base_facts = base.operands.facts;
  task.rows_per_minimum = plan_.product.rows_per_minimum;
  task.thresholds = at<float>(layout_.thresholds);
  task.key_limits = at<uint32_t>(layout_.key_limits);
  task.rerank = rerank_task(queries, base);
  task.rerank.room = plan_.product.room;
  task.rerank.neighbors = neighbors;
  launch_coarse_knn(task, failed(), at<std::byte>(layout_.coarse), stream_);
}

}  // namespace kith
