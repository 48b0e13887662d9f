#include "graph/build/cells_on_disk/source_ranks.hpp"

#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells/cell_space.hpp"
#include "graph/build/cells/centre_places.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kMostCpuRows = 8192;
constexpr int64_t kMostGpuRows = int64_t{1} << 20;
constexpr int64_t kMostGpuFound = int64_t{1} << 24;

}  // namespace

SourceRanks::SourceRanks(const CellRanking& task, const Resources& resources)
    : task_(task),
      resources_(resources.with_progress({})),
      wanted_(std::min(task.centres.rows(), task.probes + (two_sides() && task.probes > 1 ? 1 : 0))) {
  if (!on_gpu() && wanted_ > kFewWanted) near_.emplace(task.centres, wanted_, resources_);
}

SourceRanks::~SourceRanks() = default;

int64_t SourceRanks::most_rows() const {
  return on_gpu() ? std::max<int64_t>(1, std::min(kMostGpuRows, kMostGpuFound / wanted_)) : kMostCpuRows;
}

int64_t SourceRanks::at_once(int64_t section) const { return std::max(section, most_rows() / section * section); }

Footprint SourceRanks::footprint(int64_t rows) const {
  if (on_gpu()) {
    return Footprint{8 * rows * task_.probes}.beside(source_ranks_footprint_cuda(task_, wanted_, rows, resources_));
  }
  const Footprint seen{4 * rows * (cell_cols(task_.cols, task_.metric) + 2 * task_.probes)};
  if (near_ && !two_sides()) return seen;
  return seen.beside(footprint_of_call(resources_, [&](const Resources& counting) {
    const RowsInfo vectors(rows, cell_cols(task_.cols, task_.metric), DType::f32);
    (void)nearest_centres(vectors.counted_view(), task_.centres, near_ ? 1 : wanted_, counting);
  }));
}

void SourceRanks::take_memory(int64_t rows) {
  const CellSpace shape(MatrixView(nullptr, task_.dtype, {0, task_.cols, task_.cols}), task_.metric, 0.0);
  if (!on_gpu()) memory_ = shape.memory_for(rows, resources_);
  for (HostArray<uint32_t>& found : found_) {
    found = HostArray<uint32_t>(rows * task_.probes, "the cells near each row", resources_);
  }
  if (counts_only(resources_)) return count_work(footprint(rows), resources_);
  if (on_gpu()) device_ = make_source_ranks_cuda(task_, wanted_, rows, resources_);
}

const uint32_t* SourceRanks::rank(const MatrixView& rows) {
  turn_ = 1 - turn_;
  uint32_t* const to = found_[turn_].data();
  device_ ? device_->rank(rows, to) : rank_on_cpu(rows, to);
  return to;
}

void SourceRanks::rank_on_cpu(const MatrixView& rows, uint32_t* all_probes) {
  const CellSpace space(rows, task_.metric, task_.longest);
  const int64_t count = rows.rows();
  const bool at_once = task_.probes > 1 && !two_sides();
  if (!at_once) {
    const Neighbors own = nearest_centres(space.range(0, count, CellSide::found, memory_, resources_), task_.centres, 1,
                                          resources_);
    for (int64_t i = 0; i < count; ++i) all_probes[i * task_.probes] = static_cast<uint32_t>(own.ids(i)[0]);
  }
  if (task_.probes == 1) return;
  const MatrixView looking = space.range(0, count, CellSide::looking, memory_, resources_);
  const RankWindow window{0, task_.probes};
  const auto put = [&](int64_t row, const auto* found) {
    uint32_t* const probes = all_probes + row * task_.probes;
    const uint32_t own = at_once ? static_cast<uint32_t>(found[0]) : probes[0];
    put_probes(found, wanted_, own, nullptr, window, probes);
  };
  ProgressMeter meter("cells", count, resources_);
  if (near_) return near_->rank(looking, meter, [&](int64_t row, const uint32_t* found) { put(row, found); });
  const Neighbors found = nearest_centres(looking, task_.centres, wanted_, resources_);
  parallel_for(count, meter, resources_, [&](int64_t row, int) { put(row, found.ids(row)); });
}

}  // namespace kith
