// The nearest cells of rows sorted by cell, on a GPU (near_ranks.hpp), ranked as by CellPartitionCuda: all keys of some
// rows and the cells near their own, then the smallest of each row.
#include "graph/build/cells_on_disk/near_ranks.hpp"

#include <kith/knn.hpp>

#include "core/within_limits.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "cuda/row_upload.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/cell_ranks_cuda.hpp"
#include "graph/build/cells/cell_space.hpp"
#include "graph/build/cells_on_disk/ranked_rows_cuda.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"
#include "rows/device_rows.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kKeyRows = 65536;  // whose keys with all cells near theirs are computed at a time
constexpr int64_t kRuns = 1024;      // cells whose nearest are searched at a time

class NearRanksCuda final : public NearRanks::Device {
 public:
  NearRanksCuda(const CellRanking& task, int64_t rows, const Resources& resources)
      : task_(task),
        guard_(resources.device().index),
        context_(std::make_shared<const DeviceContext>(resources.device().index, resources.options().stream)),
        resources_(resources.with_progress({}).with_log({}).with_stream(context_->stream())),
        cols_(cell_cols(task.cols, task.metric)),
        near_(std::min(kCellsRanked, task.centres.rows())),
        wanted_(std::min(task.probes + 1, near_)),
        multiprocessors_(cuda_device_when_idle(context_->device()).multiprocessors),
        shape_(space_of(task)),
        made_(shape_.memory_for(rows, resources_)),
        centres_(task.centres.rows() * cols_, "the cells' centres", context_, resources_),
        some_centres_(kRuns * cols_, "the cells' centres", context_, resources_),
        ids_(kRuns * near_, "the cells near some cells", context_, resources_),
        distances_(kRuns * near_, "the cells near some cells", context_, resources_),
        numbers_(kRuns * near_, "the cells near some cells", context_, resources_),
        rows_(rows * seen_bytes(task), "rows of some cells", context_, resources_),
        own_(rows, "the rows' cells", context_, resources_),
        tables_(rows, "the rows' cells", context_, resources_),
        ranks_(rows * task.probes, "the cells near each row", context_, resources_),
        keys_(std::min(rows, kKeyRows) * near_, "the cells near some rows", context_, resources_),
        found_(std::min(rows, kKeyRows) * wanted_, "the cells near some rows", context_, resources_),
        columns_(std::min(rows, kKeyRows) * wanted_, "the cells near some rows", context_, resources_),
        selection_(plan_select({.rows = std::min(rows, kKeyRows), .cols = near_, .k = wanted_}, multiprocessors_)
                       .workspace_bytes,
                   "the cells near some rows", context_, resources_),
        tables_on_host_(8 * rows + 4 * kRuns * cols_, 0, resources_),
        upload_(goes_through_pinned(task, rows) && !counts_only(resources_), resources_) {
    if (counts_only(resources_)) {
      search_near(kRuns);
      return;
    }
    for (int64_t i = 0; i < task.centres.rows(); ++i) {
      context_->copy(centres_.data() + i * cols_, task.centres.row(i), 4 * cols_);
    }
    context_->synchronize();
  }

  void rank(const MatrixView& rows, const std::vector<NearRanks::Run>& runs, uint32_t* probes) override {
    int64_t row = 0;
    for (size_t first = 0; first < runs.size(); first += kRuns) {
      const std::vector<NearRanks::Run> some(
          runs.begin() + static_cast<std::ptrdiff_t>(first),
          runs.begin() + static_cast<std::ptrdiff_t>(std::min(first + size_t{kRuns}, runs.size())));
      int64_t count = 0;
      for (const NearRanks::Run& run : some) count += run.rows;
      rank_some(rows.slice(row, count), some, probes + row * task_.probes);
      row += count;
    }
  }

 private:
  MemorySpace here() const { return MemorySpace::cuda(context_->device()); }
  MatrixView centres(const DeviceArray<float>& of, int64_t count) const {
    return {of.data(), DType::f32, {count, cols_, cols_}, here()};
  }

  // The cells near those whose centres are listed.
  void search_near(int64_t count) const {
    const NeighborsView out{ids_.data(), distances_.data(), count, near_, here()};
    const KnnParams params{.k = near_, .metric = Metric::l2, .check_finite = false};
    call_or_count(resources_, [&](const Resources& used) {
      knn(centres(some_centres_, count), centres(centres_, task_.centres.rows()), out, params, used);
    });
  }

  void rank_some(const MatrixView& rows, const std::vector<NearRanks::Run>& runs, uint32_t* probes) {
    resources_.check_cancelled();
    const auto run_count = static_cast<int64_t>(runs.size());
    std::vector<float> chosen(static_cast<size_t>(run_count * cols_));
    std::vector<uint32_t> own;
    std::vector<uint32_t> tables;
    for (size_t i = 0; i < runs.size(); ++i) {
      std::memcpy(chosen.data() + static_cast<int64_t>(i) * cols_, task_.centres.row(runs[i].cell),
                  static_cast<size_t>(4 * cols_));
      own.insert(own.end(), static_cast<size_t>(runs[i].rows), runs[i].cell);
      tables.insert(tables.end(), static_cast<size_t>(runs[i].rows), static_cast<uint32_t>(i));
    }
    context_->copy_values(some_centres_.data(), chosen.data(), run_count * cols_);
    context_->copy_values(own_.data(), own.data(), rows.rows());
    context_->copy_values(tables_.data(), tables.data(), rows.rows());
    search_near(run_count);
    launch_sort_numbers(ids_.data(), run_count, near_, numbers_.data(), context_->stream());
    const CellSpace space(rows, task_.metric, task_.longest);
    const MatrixView looking = space.range(0, rows.rows(), CellSide::looking, made_, resources_);
    const MutableMatrixView there(rows_.data(), looking.dtype(), {rows.rows(), looking.cols(), looking.cols()}, here());
    ProgressMeter meter("near cells", rows.rows(), resources_);
    upload_.copy(looking, rows_.data(), context_->stream(), meter);
    const DeviceRowsView all = device_rows(there);
    size_t run = 0;
    int64_t in_run = 0;  // rows of it that are done
    for (int64_t first = 0; first < rows.rows(); first += kKeyRows) {
      const int64_t count = std::min(kKeyRows, rows.rows() - first);
      for (int64_t at = 0; at < count;) {
        const int64_t some = std::min(runs[run].rows - in_run, count - at);
        compute_keys(slice_rows(all, first + at, some), static_cast<int64_t>(run), at);
        at += some;
        in_run += some;
        if (in_run == runs[run].rows) {
          ++run;
          in_run = 0;
        }
      }
      put_ranks(first, count);
    }
    context_->copy_values(probes, ranks_.data(), rows.rows() * task_.probes);
    context_->synchronize();
  }

  void compute_keys(const DeviceRowsView& rows, int64_t run, int64_t at) const {
    DeviceRowsView others = device_rows(centres(centres_, task_.centres.rows()));
    others.list = numbers_.data() + run * near_;
    others.count = near_;
    DistanceTask task{rows, others, cols_, KeyKind::l2, reinterpret_cast<uint32_t*>(keys_.data()) + at * near_, near_};
    task.form = KeyForm::plain;
    launch_distance(task, context_->stream());
  }

  void put_ranks(int64_t first, int64_t count) const {
    const SelectInput input{keys_.data(), count, near_, near_};
    const SelectProblem problem = problem_of(input, wanted_, SelectOrder::smallest);
    launch_select_rows(input, {found_.data(), columns_.data(), nullptr}, problem, plan_select(problem, multiprocessors_),
                       selection_.data(), context_->stream());
    NearRanksTask task;
    task.columns = columns_.data();
    task.stride = wanted_;
    task.count = count;
    task.own = own_.data() + first;
    task.tables = tables_.data() + first;
    task.numbers = numbers_.data();
    task.near = near_;
    task.ranks = ranks_.data() + first * task_.probes;
    task.probes = task_.probes;
    launch_put_near_ranks(task, context_->stream());
  }

  const CellRanking task_;
  const DeviceGuard guard_;
  const std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const int64_t cols_;
  const int64_t near_;
  const int64_t wanted_;
  const int multiprocessors_;
  const CellSpace shape_;
  MatrixBuffer made_;
  DeviceArray<float> centres_;
  DeviceArray<float> some_centres_;
  DeviceArray<int64_t> ids_;
  DeviceArray<float> distances_;
  DeviceArray<uint32_t> numbers_;
  DeviceBuffer rows_;
  DeviceArray<uint32_t> own_;
  DeviceArray<uint32_t> tables_;
  DeviceArray<uint32_t> ranks_;
  DeviceArray<float> keys_;
  DeviceArray<float> found_;
  DeviceArray<int32_t> columns_;
  DeviceBuffer selection_;
  const Reservation tables_on_host_;
  RowUpload upload_;
};

}  // namespace

std::unique_ptr<NearRanks::Device> make_near_ranks_cuda(const CellRanking& task, int64_t rows,
                                                        const Resources& resources) {
  return std::make_unique<NearRanksCuda>(task, rows, resources);
}

Footprint near_ranks_footprint_cuda(const CellRanking& task, int64_t rows, const Resources& resources) {
  const Footprint pinned{goes_through_pinned(task, rows) ? kPinnedBytes : 0};
  return footprint_of<NearRanksCuda>(resources, task, rows).beside(pinned);
}

}  // namespace kith
