#include "graph/build/cells/near_cells_cuda.hpp"

#include <kith/knn.hpp>

#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/cell_ranks_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kCellBatch = 8192;  // cells whose nearest are searched at a time
static_assert(kCellsRanked <= kMostSorted);

}  // namespace

NearCells::NearCells(const MatrixView& centres, const uint32_t* own, const std::vector<int64_t>& sizes, int64_t rows,
                     std::shared_ptr<const DeviceContext> context, const Resources& resources)
    : count_(std::min(kCellsRanked, centres.rows())),
      numbers_(centres.rows() * count_, "the cells near each cell", context, resources),
      members_(rows, "the rows of each cell", context, resources) {
  const int64_t cells = centres.rows();
  const int64_t batch = std::min(cells, kCellBatch);
  const DeviceArray<int64_t> ids(batch * count_, "the cells near some cells", context, resources);
  const DeviceArray<float> distances(batch * count_, "the cells near some cells", context, resources);
  for (int64_t first = 0; first < cells; first += batch) {
    const NeighborsView found{ids.data(), distances.data(), std::min(batch, cells - first), count_, centres.space()};
    knn(centres.slice(first, found.queries), centres, found,
        {.k = count_, .metric = Metric::l2, .check_finite = false}, resources);
    launch_sort_numbers(found.ids, found.queries, count_, numbers_.data() + first * count_, context->stream());
  }

  std::vector<uint32_t> starts(sizes.size());
  uint32_t start = 0;
  for (size_t cell = 0; cell < sizes.size(); ++cell) {
    starts[cell] = start;
    start += static_cast<uint32_t>(sizes[cell]);
  }
  const DeviceArray<uint32_t> next(cells, "the cells", context, resources);
  const DeviceArray<uint32_t> places(rows, "the rows of each cell", context, resources);
  context->copy_values(next.data(), starts.data(), cells);
  launch_put_places({own, 1, rows, 0, 1}, cells, next.data(), members_.data(), places.data(), context->stream());
  context->synchronize();  // `starts` is on its way
}

}  // namespace kith
