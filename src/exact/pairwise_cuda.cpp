#include "exact/pairwise_cuda.hpp"

#include "core/typed_row.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/error.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "exact/search_rows_cuda.hpp"
#include "exact/search_workspace_cuda.hpp"
#include "kernels/distance/distance_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

// Copies a tile to its place in the result, in host memory.
void copy_tile(const DistanceTask& tile, const MutableMatrixView& out, int64_t first_query, int64_t first_row,
               cudaStream_t stream) {
  constexpr int64_t kLargestPitch = INT32_MAX;  // what a two-dimensional copy takes
  const int64_t pitch = out.row_stride() * 4;
  const auto width = static_cast<size_t>(tile.rows.count) * 4;
  const auto place = [&](int64_t query) { return out.row(first_query + query) + first_row * 4; };
  if (pitch <= kLargestPitch) {
    KITH_CUDA_CHECK(cudaMemcpy2DAsync(place(0), static_cast<size_t>(pitch), tile.keys,
                                      static_cast<size_t>(tile.stride) * 4, width,
                                      static_cast<size_t>(tile.queries.count), cudaMemcpyDefault, stream));
    return;
  }
  for (int64_t query = 0; query < tile.queries.count; ++query) {
    KITH_CUDA_CHECK(cudaMemcpyAsync(place(query), tile.keys + query * tile.stride, width, cudaMemcpyDefault, stream));
  }
}

}  // namespace

void pairwise_cuda(const SearchTask& task, const PlannedKnn& planned, const MatrixView& x, const MatrixView& y,
                   const MutableMatrixView& out, const PairwiseNames& names) {
  const auto& plan = std::get<KnnCudaPlan>(planned.plan);
  const Resources& resources = planned.resources();
  check_on_device(out, "output", plan.device.index);
  const DeviceGuard guard(plan.device.index);
  const KnnWorkspace layout(task, plan);
  SearchRows rows(task, plan, nullptr, layout, resources, {names.x, names.y});
  ProgressMeter meter(names.stage, x.rows() * y.rows(), resources);
  for (int64_t batch = 0; batch < x.rows(); batch += plan.query_batch) {
    const int64_t count = std::min(plan.query_batch, x.rows() - batch);
    const DeviceRowsView queries = rows.load_queries(x.slice(batch, count), batch);
    rows.for_each_piece(y, 0, nullptr, meter, [&](const ProductBase& piece) {
      for (int64_t first = 0; first < count; first += plan.query_tile) {
        const DeviceRowsView part = slice_rows(queries, first, std::min(plan.query_tile, count - first));
        DistanceTask distances{part, piece.rows, task.shape.cols, key_kind(task.shape.metric)};
        distances.form = KeyForm::distance;
        if (task.keys_in_place()) {
          distances.keys = typed_row<uint32_t>(out, batch + first) + piece.first_row;
          distances.stride = out.row_stride();
          launch_distance(distances, rows.stream());
        } else {
          distances.keys = rows.at(layout.keys);
          distances.stride = plan.row_tile;
          launch_distance(distances, rows.stream());
          copy_tile(distances, out, batch + first, piece.first_row, rows.stream());
        }
        (void)rows.read_status(&piece);
        meter.add(part.count * piece.rows.count);
        meter.poll();
      }
    });
  }
  meter.finish();
}

}  // namespace kith
