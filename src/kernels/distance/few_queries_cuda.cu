// Keys of one to four queries, as canonical.hpp says: four threads compute a row's, with the queries in shared memory.
// Time is that of reading the rows once.
#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "cuda/launch.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/row_sum_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsAtOnce = kThreads / kRowThreads;
constexpr int64_t kMostBlocks = 132 * 8;  // each takes rows until none are left: queries are widened once for many
constexpr int64_t kMostShared = int64_t{48} << 10;

int64_t shared_bytes(int64_t queries, int64_t cols) {
  return queries * padded_cols(cols) * static_cast<int64_t>(sizeof(double));
}

template <bool kProduct, int kQueries, typename X>
__global__ void __launch_bounds__(kThreads) few_queries_kernel(const __grid_constant__ DistanceTask task) {
  extern __shared__ __align__(16) double queries[];
  const bool unit = task.kind == KeyKind::cosine;
  for (int64_t q = 0; q < kQueries; ++q) {
    const int64_t query = q < task.queries.count ? q : task.queries.count - 1;
    widen_query(task.queries, task.queries.stored(query), task.cols, unit ? task.queries.inverse_norms[query] : 1.0,
                queries + q * padded_cols(task.cols));
  }
  __syncthreads();
  const bool aligned = rows_aligned(static_cast<const X*>(task.rows.data), task.rows.stride);
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kRowsAtOnce + threadIdx.x / kRowThreads; row < task.rows.count;
       row += static_cast<int64_t>(gridDim.x) * kRowsAtOnce) {
    double sums[kQueries];
    row_sums<kProduct, kQueries>(queries, task.rows.row<X>(row), task.cols, aligned,
                                 unit ? task.rows.inverse_norms[row] : 1.0, sums);
    if (threadIdx.x % kRowThreads != 0) continue;
    KITH_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      if (q < task.queries.count) {
        task.keys[q * task.stride + row] = written_key(task, key_of_sum(task, sums[q], q, row));
      }
    }
    // The squares, and the products, of what is finite are too, in double precision.
    if (task.first_bad != nullptr && !(sums[0] - sums[0] == 0.0)) {
      atomicMin(task.first_bad, static_cast<uint32_t>(row));
    }
  }
}

template <bool kProduct, typename X>
void launch_few(const DistanceTask& task, cudaStream_t stream) {
  const int64_t queries = task.queries.count == 1 ? 1 : task.queries.count == 2 ? 2 : kFewQueriesMost;
  const Grid grid = Grid::of(std::min(divide_up(task.rows.count, kRowsAtOnce), kMostBlocks), kThreads)
                        .with_shared(shared_bytes(queries, task.cols));
  if (queries == 1) return launch(few_queries_kernel<kProduct, 1, X>, grid, stream, task);
  if (queries == 2) return launch(few_queries_kernel<kProduct, 2, X>, grid, stream, task);
  launch(few_queries_kernel<kProduct, kFewQueriesMost, X>, grid, stream, task);
}

}  // namespace

bool suits_few_queries(const DistanceTask& task) {
  return is_product(task.kind) && task.queries.count <= kFewQueriesMost && task.cols > kFewColumns &&
         shared_bytes(kFewQueriesMost, task.cols) <= kMostShared;
}

void launch_few_queries_distance(const DistanceTask& task, cudaStream_t stream) {
  visit_dtype(task.rows.dtype, [&]<typename X>(StoredAs<X>) {
    if (task.kind == KeyKind::inner_product) return launch_few<true, X>(task, stream);
    launch_few<false, X>(task, stream);
  });
}

}  // namespace kith
