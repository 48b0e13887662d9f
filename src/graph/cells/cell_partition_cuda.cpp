#include "graph/cells/cell_partition_cuda.hpp"

#include <kith/kmeans.hpp>
#include <kith/knn.hpp>

#include "cluster/row_sample.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "graph/cells/cell_ranks_cuda.hpp"
#include "graph/cells/cell_training.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kBatch = int64_t{1} << 18;
constexpr int64_t kFoundBytes = int64_t{1} << 30;  // of a batch's ranks

int64_t batch_for(int64_t rows, int64_t wanted) {
  return std::max<int64_t>(std::min({rows, kBatch, kFoundBytes / (12 * wanted)}), 1);
}

}  // namespace

CellPartitionCuda::CellPartitionCuda(const GraphRowsCuda& rows, const CellParams& params,
                                     std::shared_ptr<const DeviceContext> context, const Resources& resources)
    : rows_(rows),
      context_(std::move(context)),
      resources_(resources.with_progress({}).with_log({})),
      space_(rows, params.metric, context_, resources_),
      cells_(params.cells),
      probes_(ranked_probes(params)),
      own_(4 * rows.view().rows(), "the cells", context_, resources_) {
  learn_centres(params);
}

void CellPartitionCuda::learn_centres(const CellParams& params) {
  const int64_t all = rows_.view().rows();
  const int64_t count = std::min(all, params.cells * kSampleRowsPerCell);
  const std::vector<uint32_t> sample = sample_rows(CounterRng(params.seed, kCellSampleStream), all, count, resources_);
  const DeviceBuffer list(4 * count, "a sample of the rows", context_, resources_);
  const DeviceBuffer vectors(4 * count * space_.cols(), "a sample of the rows", context_, resources_);
  context_->copy(list.data(), sample.data(), 4 * count);
  const MatrixView seen =
      space_.listed(reinterpret_cast<const uint32_t*>(list.data()), count, CellSide::found, vectors);
  KMeans means(cell_training(params));
  means.fit(seen, {}, resources_);
  const MatrixView learned = means.centres();
  centre_memory_ = DeviceBuffer(4 * cells_ * space_.cols(), "the cells' centres", context_, resources_);
  for (int64_t i = 0; learned.row_stride() != space_.cols() && i < cells_; ++i) {
    context_->copy(centre_memory_.data() + i * 4 * space_.cols(), learned.row(i), 4 * space_.cols());
  }
  if (learned.row_stride() == space_.cols()) {
    context_->copy(centre_memory_.data(), learned.data(), centre_memory_.bytes());
  }
  context_->synchronize();
  centres_ = MatrixView(centre_memory_.data(), DType::f32, {cells_, space_.cols(), space_.cols()},
                        MemorySpace::cuda(context_->device()));
}

void CellPartitionCuda::search(const MatrixView& queries, const MatrixView& centres, int64_t k) const {
  const KnnParams wish{.k = k, .metric = Metric::l2, .check_finite = false};
  const NeighborsView out{reinterpret_cast<int64_t*>(found_ids_.data()),
                          reinterpret_cast<float*>(found_distances_.data()), queries.rows(), k,
                          MemorySpace::cuda(context_->device())};
  knn(queries, centres, out, wish, resources_);
}

void CellPartitionCuda::rank(int64_t probes) {
  probes = std::min(probes, probes_);
  if (probes <= ranked_) return;
  ranks_ = DeviceBuffer();  // the old ones go before the new ones come
  ranks_ = DeviceBuffer(4 * rows_.view().rows() * probes, "the cells near each row", context_, resources_);
  const bool all = cells_ <= kMostCellsRanked;
  // With own cells last among the nearest of what looks for others, one more has to be found.
  const int64_t wanted = std::min(cells_, probes + (space_.has_two_sides() || !all ? 1 : 0));
  const int64_t batch = batch_for(rows_.view().rows(), std::max(wanted, all ? wanted : kCellsRanked));
  found_ids_ = DeviceBuffer(8 * batch * wanted, "the cells near some rows", context_, resources_);
  found_distances_ = DeviceBuffer(4 * batch * wanted, "the cells near some rows", context_, resources_);
  if (!space_.is_identity() || !all) {
    made_ = DeviceBuffer(4 * batch * space_.cols(), "rows as cells see them", context_, resources_);
  }
  rank_all(probes);
  if (sizes_.empty()) count_sizes();
  if (!all && probes > 1) rank_near(probes);
  ranked_ = probes;
  found_ids_ = DeviceBuffer();
  found_distances_ = DeviceBuffer();
  made_ = DeviceBuffer();
}

// Own cells, where they are not known, and where all cells are ranked the others.
void CellPartitionCuda::rank_all(int64_t probes) {
  const int64_t all = rows_.view().rows();
  const bool ranks_all = cells_ <= kMostCellsRanked;
  const bool both = ranks_all && !space_.has_two_sides();
  const int64_t wanted = std::min(cells_, probes + (space_.has_two_sides() || !ranks_all ? 1 : 0));
  const int64_t batch = batch_for(all, std::max(wanted, ranks_all ? wanted : kCellsRanked));
  for (int64_t first = 0; first < all; first += batch) {
    resources_.check_cancelled();
    const int64_t count = std::min(batch, all - first);
    RanksTask task;
    task.found = reinterpret_cast<const int64_t*>(found_ids_.data());
    task.count = count;
    task.first = first;
    task.own = reinterpret_cast<uint32_t*>(own_.data());
    task.probes = probes;
    uint32_t* const ranks = reinterpret_cast<uint32_t*>(ranks_.data());
    if (both || ranked_ == 0) {
      task.stride = both ? wanted : 1;
      search(space_.range(first, count, CellSide::found, made_), centres_, task.stride);
      task.sets_own = true;
      task.ranks = both || probes == 1 ? ranks : nullptr;
      launch_put_ranks(task, context_->stream());
    }
    if (!both && ranks_all && probes > 1) {
      task.stride = wanted;
      search(space_.range(first, count, CellSide::looking, made_), centres_, wanted);
      task.sets_own = false;
      task.ranks = ranks;
      launch_put_ranks(task, context_->stream());
    }
  }
}

// Cell by cell, among those whose centres are nearest to its own.
void CellPartitionCuda::rank_near(int64_t probes) {
  const int64_t near = std::min(kCellsRanked, cells_);
  const int64_t wanted = std::min({cells_, probes + 1, near});
  const int64_t all = rows_.view().rows();
  std::vector<uint32_t> starts(static_cast<size_t>(cells_) + 1, 0);
  for (int64_t cell = 0; cell < cells_; ++cell) {
    starts[static_cast<size_t>(cell) + 1] =
        starts[static_cast<size_t>(cell)] + static_cast<uint32_t>(sizes_[static_cast<size_t>(cell)]);
  }
  const DeviceBuffer next(4 * cells_, "the cells", context_, resources_);
  const DeviceBuffer members(4 * all, "the rows of each cell", context_, resources_);
  const DeviceBuffer places(4 * all, "the rows of each cell", context_, resources_);
  context_->copy(next.data(), starts.data(), 4 * cells_);
  launch_put_places({own(), 1, all, 0, 1}, reinterpret_cast<uint32_t*>(next.data()),
                    reinterpret_cast<uint32_t*>(members.data()), reinterpret_cast<uint32_t*>(places.data()),
                    context_->stream());
  const DeviceBuffer list(4 * near, "the cells near a cell", context_, resources_);
  const DeviceBuffer chosen(4 * near * space_.cols(), "the cells near a cell", context_, resources_);
  const MatrixView vectors(chosen.data(), DType::f32, {near, space_.cols(), space_.cols()}, centres_.space());
  std::vector<int64_t> around(static_cast<size_t>(near));
  std::vector<uint32_t> numbers(static_cast<size_t>(near));
  const int64_t batch = batch_for(all, std::max(wanted, kCellsRanked));
  for (int64_t cell = 0; cell < cells_; ++cell) {
    const int64_t size = sizes_[static_cast<size_t>(cell)];
    if (size == 0) continue;
    resources_.check_cancelled();
    search(centres_.slice(cell, 1), centres_, near);
    context_->copy(around.data(), found_ids_.data(), 8 * near);
    context_->synchronize();
    std::transform(around.begin(), around.end(), numbers.begin(), [](int64_t id) { return static_cast<uint32_t>(id); });
    std::sort(numbers.begin(), numbers.end());  // so that ties go to the smaller cell
    context_->copy(list.data(), numbers.data(), 4 * near);
    launch_gather_centres(centres_, reinterpret_cast<const uint32_t*>(list.data()), near,
                          reinterpret_cast<float*>(chosen.data()), context_->stream());
    for (int64_t first = 0; first < size; first += batch) {
      RanksTask task;
      task.count = std::min(batch, size - first);
      task.list = reinterpret_cast<const uint32_t*>(members.data()) + starts[static_cast<size_t>(cell)] + first;
      search(space_.listed(task.list, task.count, CellSide::looking, made_), vectors, wanted);
      task.found = reinterpret_cast<const int64_t*>(found_ids_.data());
      task.stride = wanted;
      task.numbers = reinterpret_cast<const uint32_t*>(list.data());
      task.own = reinterpret_cast<uint32_t*>(own_.data());
      task.ranks = reinterpret_cast<uint32_t*>(ranks_.data());
      task.probes = probes;
      launch_put_ranks(task, context_->stream());
    }
  }
}

void CellPartitionCuda::count_sizes() {
  const DeviceBuffer counts(4 * cells_, "the cells", context_, resources_);
  KITH_CUDA_CHECK(cudaMemsetAsync(counts.data(), 0, static_cast<size_t>(4 * cells_), context_->stream()));
  launch_count_cells({own(), 1, rows_.view().rows(), 0, 1}, reinterpret_cast<uint32_t*>(counts.data()),
                     context_->stream());
  std::vector<uint32_t> found(static_cast<size_t>(cells_));
  context_->copy(found.data(), counts.data(), counts.bytes());
  context_->synchronize();
  sizes_.assign(found.begin(), found.end());
}

}  // namespace kith
