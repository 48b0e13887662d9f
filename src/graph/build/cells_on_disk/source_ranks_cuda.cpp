// The cells of a source's rows on a GPU (source_ranks.hpp), where the centres stay. Rows come as they are stored, unless
// cells see others than these.
#include "graph/build/cells_on_disk/source_ranks.hpp"

#include <kith/knn.hpp>

#include "core/within_limits.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "graph/build/cells/cell_ranks_cuda.hpp"
#include "graph/build/cells/cell_space.hpp"
#include "graph/build/cells_on_disk/ranked_rows_cuda.hpp"

#include <memory>

namespace kith {
namespace {

class SourceRanksCuda final : public SourceRanks::Device {
 public:
  SourceRanksCuda(const CellRanking& task, int64_t wanted, int64_t rows, const Resources& resources)
      : task_(task),
        wanted_(wanted),
        guard_(resources.device().index),
        context_(std::make_shared<const DeviceContext>(resources.device().index, resources.options().stream)),
        resources_(resources.with_progress({}).with_log({}).with_stream(context_->stream())),
        cols_(cell_cols(task.cols, task.metric)),
        shape_(space_of(task)),
        made_(shape_.memory_for(rows, resources_)),
        centres_(task.centres.rows() * cols_, "the cells' centres", context_, resources_),
        rows_(rows * seen_bytes(task), "rows of the source", context_, resources_),
        ids_(rows * wanted, "the cells near each row", context_, resources_),
        distances_(rows * wanted, "the cells near each row", context_, resources_),
        own_(rows, "the rows' cells", context_, resources_),
        ranks_(task.probes > 1 ? rows * task.probes : 0, "the cells near each row", context_, resources_),
        upload_(goes_through_pinned(task, rows) && !counts_only(resources_), resources_) {
    if (counts_only(resources_)) {
      const MatrixView looking(rows_.data(), shape_.is_identity() ? task.dtype : DType::f32, {rows, cols_, cols_}, here());
      search(looking, wanted_);
      return;
    }
    for (int64_t i = 0; i < task.centres.rows(); ++i) {
      context_->copy(centres_.data() + i * cols_, task.centres.row(i), 4 * cols_);
    }
    context_->synchronize();
  }

  void rank(const MatrixView& rows, uint32_t* probes) override {
    resources_.check_cancelled();
    const CellSpace space(rows, task_.metric, task_.longest);
    RanksTask task;
    task.found = ids_.data();
    task.count = rows.rows();
    task.own = own_.data();
    task.probes = task_.probes;
    uint32_t* const ranks = task_.probes > 1 ? ranks_.data() : nullptr;
    const bool both = !shape_.has_two_sides() || task_.probes == 1;
    task.stride = both ? wanted_ : 1;
    search(bring(space, CellSide::found), task.stride);
    task.sets_own = true;
    task.ranks = both ? ranks : nullptr;
    launch_put_ranks(task, context_->stream());
    if (!both) {
      task.stride = wanted_;
      search(bring(space, CellSide::looking), wanted_);
      task.sets_own = false;
      task.ranks = ranks;
      launch_put_ranks(task, context_->stream());
    }
    context_->copy_values(probes, ranks == nullptr ? own_.data() : ranks, rows.rows() * task_.probes);
    context_->synchronize();
  }

 private:
  MemorySpace here() const { return MemorySpace::cuda(context_->device()); }

  // Rows as cells see them, on the device. What is made of them goes over before other rows are made.
  MatrixView bring(const CellSpace& space, CellSide side) {
    const MatrixView made = space.range(0, space.rows(), side, made_, resources_);
    ProgressMeter meter("cells", made.rows(), resources_);
    upload_.copy(made, rows_.data(), context_->stream(), meter);
    return {rows_.data(), made.dtype(), {made.rows(), made.cols(), made.cols()}, here()};
  }

  void search(const MatrixView& rows, int64_t k) const {
    const MatrixView centres(centres_.data(), DType::f32, {task_.centres.rows(), cols_, cols_}, here());
    const NeighborsView out{ids_.data(), distances_.data(), rows.rows(), k, here()};
    const KnnParams params{.k = k, .metric = Metric::l2, .check_finite = false};
    call_or_count(resources_, [&](const Resources& used) { knn(rows, centres, out, params, used); });
  }

  const CellRanking task_;
  const int64_t wanted_;
  const DeviceGuard guard_;
  const std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const int64_t cols_;
  const CellSpace shape_;
  MatrixBuffer made_;
  DeviceArray<float> centres_;
  DeviceBuffer rows_;
  DeviceArray<int64_t> ids_;
  DeviceArray<float> distances_;
  DeviceArray<uint32_t> own_;
  DeviceArray<uint32_t> ranks_;
  RowUpload upload_;
};

}  // namespace

std::unique_ptr<SourceRanks::Device> make_source_ranks_cuda(const CellRanking& task, int64_t wanted, int64_t rows,
                                                            const Resources& resources) {
  return std::make_unique<SourceRanksCuda>(task, wanted, rows, resources);
}

Footprint source_ranks_footprint_cuda(const CellRanking& task, int64_t wanted, int64_t rows,
                                      const Resources& resources) {
  const Footprint pinned{goes_through_pinned(task, rows) ? kPinnedBytes : 0};
  return footprint_of<SourceRanksCuda>(resources, task, wanted, rows).beside(pinned);
}

}  // namespace kith
