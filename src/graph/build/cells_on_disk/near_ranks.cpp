#include "graph/build/cells_on_disk/near_ranks.hpp"

#include "core/within_limits.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/cell_space.hpp"
#include "graph/build/cells/centre_places.hpp"
#include "rows/rows_info.hpp"

#include <algorithm>
#include <cstring>

namespace kith {

NearRanks::NearRanks(const CellRanking& task, const Resources& resources)
    : task_(task), resources_(resources.with_progress({})) {}

NearRanks::~NearRanks() = default;

int64_t NearRanks::among() const { return std::min(kCellsRanked, task_.centres.rows()); }

Footprint NearRanks::footprint(int64_t rows) const {
  const int64_t cols = cell_cols(task_.cols, task_.metric);
  const Footprint probes{4 * rows * task_.probes};
  if (on_gpu()) return probes.beside(near_ranks_footprint_cuda(task_, rows, resources_));
  const auto search = [&](int64_t queries, int64_t centres, int64_t k) {
    return footprint_of_call(resources_, [&](const Resources& counting) {
      const RowsInfo vectors(queries, cols, DType::f32);
      (void)nearest_centres(vectors.counted_view(), task_.centres.slice(0, centres), k, counting);
    });
  };
  const Footprint around = search(1, task_.centres.rows(), among());
  return probes.beside({4 * cols * (rows + among()) + 4 * among()})
      .beside(around.then(search(rows, among(), std::min(task_.probes + 1, among()))));
}

void NearRanks::take_memory(int64_t rows) {
  found_ = HostArray<uint32_t>(rows * task_.probes, "the cells near each row", resources_);
  if (counts_only(resources_)) return count_work(footprint(rows), resources_);
  if (on_gpu()) {
    device_ = make_near_ranks_cuda(task_, rows, resources_);
    return;
  }
  const CellSpace shape(MatrixView(nullptr, task_.dtype, {0, task_.cols, task_.cols}), task_.metric, 0.0);
  chosen_ = MatrixBuffer(DType::f32, among(), shape.cols(), "the cells near a cell", resources_);
  memory_ = shape.memory_for(rows, resources_);
}

void NearRanks::rank(const MatrixView& rows, const std::vector<Run>& runs) {
  if (device_) return device_->rank(rows, runs, found_.data());
  int64_t row = 0;
  for (const Run& run : runs) {
    rank_cell(rows.slice(row, run.rows), run, found_.data() + row * task_.probes);
    row += run.rows;
    resources_.check_cancelled();
  }
}

void NearRanks::rank_cell(const MatrixView& rows, const Run& run, uint32_t* probes) {
  const MatrixView all = task_.centres;
  const Neighbors around = nearest_centres(all.slice(run.cell, 1), all, among(), resources_);
  std::vector<uint32_t> numbers(around.ids(0), around.ids(0) + among());
  std::sort(numbers.begin(), numbers.end());  // so that ties go to the smaller cell
  for (int64_t j = 0; j < among(); ++j) {
    std::memcpy(chosen_.mutable_view().row(j), all.row(numbers[static_cast<size_t>(j)]),
                static_cast<size_t>(all.cols() * 4));
  }
  const CellSpace space(rows, task_.metric, task_.longest);
  const MatrixView looking = space.range(0, run.rows, CellSide::looking, memory_, resources_);
  const Neighbors near =
      nearest_centres(looking, chosen_.view(), std::min(task_.probes + 1, among()), resources_);
  for (int64_t i = 0; i < run.rows; ++i) {
    put_probes(near.ids(i), near.k(), run.cell, &numbers, {0, task_.probes}, probes + i * task_.probes);
  }
}

}  // namespace kith
