// Keys of one to four queries, as canonical.hpp says (few_keys_cuda.hpp).
#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "cuda/launch.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/few_keys_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kMostBlocks = 132 * 8;  // each loops over many rows, so the queries are widened rarely
constexpr int64_t kMostShared = int64_t{48} << 10;

template <bool kProduct, int kQueries, typename X>
__global__ void __launch_bounds__(kFewThreads) few_queries_kernel(const __grid_constant__ DistanceTask task) {
  extern __shared__ __align__(16) double queries[];
  const bool unit = task.kind == KeyKind::cosine;
  for (int64_t q = 0; q < kQueries; ++q) {
    const int64_t query = q < task.queries.count ? q : task.queries.count - 1;
    widen_query(task.queries, task.queries.stored(query), task.cols, unit ? task.queries.inverse_norms[query] : 1.0,
                queries + q * padded_cols(task.cols));
  }
  __syncthreads();
  for_each_few_sums<kProduct, kQueries, X>(task, queries, [&](int64_t row, const double(&sums)[kQueries]) {
    KITH_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      if (q < task.queries.count) {
        task.keys[q * task.stride + row] = written_key(task, key_of_sum(task, sums[q], q, row));
      }
    }
  });
}

template <bool kProduct, typename X>
void launch_few(const DistanceTask& task, cudaStream_t stream) {
  const int64_t queries = task.queries.count == 1 ? 1 : task.queries.count == 2 ? 2 : kFewQueriesMost;
  const Grid grid = Grid::of(std::min(divide_up(task.rows.count, kFewRowsAtOnce), kMostBlocks), kFewThreads)
                        .with_shared(few_shared_bytes(queries, task.cols));
  if (queries == 1) return launch(few_queries_kernel<kProduct, 1, X>, grid, stream, task);
  if (queries == 2) return launch(few_queries_kernel<kProduct, 2, X>, grid, stream, task);
  launch(few_queries_kernel<kProduct, kFewQueriesMost, X>, grid, stream, task);
}

}  // namespace

bool suits_few_queries(const DistanceTask& task) {
  return is_product(task.kind) && task.queries.count <= kFewQueriesMost && task.cols > kFewColumns &&
         few_shared_bytes(kFewQueriesMost, task.cols) <= kMostShared;
}

void launch_few_queries_distance(const DistanceTask& task, cudaStream_t stream) {
  visit_dtype(task.rows.dtype, [&]<typename X>(StoredAs<X>) {
    if (task.kind == KeyKind::inner_product) return launch_few<true, X>(task, stream);
    launch_few<false, X>(task, stream);
  });
}

}  // namespace kith
