#include "graph/build/cells/cell_partition.hpp"

#include <kith/knn.hpp>

#include "cluster/kmeans_fit.hpp"
#include "cluster/shared/kmeans_ranks.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/cell_ranks_cpu.hpp"
#include "graph/build/cells/centre_places.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kBatch = 16384;

// The centres of cells, learned from some rows.
MatrixBuffer learn_centres(const CellSpace& space, int64_t rows, const CellsParams& params,
                           const Resources& resources) {
  const int64_t count = std::min(rows, params.cells * kSampleRowsPerCell);
  const std::vector<uint32_t> sample = sample_rows(CounterRng(params.seed, kCellSampleStream), rows, count, resources);
  const MatrixBuffer vectors = space.listed(sample.data(), count, CellSide::found, resources);
  if (counts_only(resources)) {
    count_work(fit_footprint(cell_training(params), RowsInfo(vectors.view()), resources), resources);
    return MatrixBuffer(DType::f32, params.cells, space.cols(), "the cells' centres", resources);
  }
  MatrixBuffer centres(DType::f32, params.cells, space.cols(), "the cells' centres", resources);
  const auto keep = [&](const MatrixView& learned) {
    for (int64_t i = 0; i < params.cells; ++i) {
      std::copy_n(learned.row(i), space.cols() * 4, centres.mutable_view().row(i));
    }
  };
  // Under a limit one rank learns for all: to share it takes more memory. A limit is each rank's, so they agree.
  const bool limited = params.share != nullptr && params.share->sum(counts_memory(resources) ? 1 : 0) > 0;
  if (params.share != nullptr && !limited) {
    const KMeansSharedByRanks sharing(params.share->ranks());
    keep(fit_kmeans(cell_training(params), rows_of(vectors.view()), {}, resources, &sharing).centres.view());
    return centres;
  }
  if (params.share == nullptr || params.share->leads())
    keep(learn_cells(vectors.view(), params, resources).snapshot().centres);
  if (params.share != nullptr) {
    params.share->take_first(static_cast<std::byte*>(centres.mutable_view().row(0)), params.cells * space.cols() * 4);
  }
  return centres;
}

}  // namespace

CellPartition::CellPartition(const MatrixView& x, const CellsParams& params, const ControlRows* control,
                             const Resources& resources)
    : cells_(params.cells),
      probes_(ranked_probes(params)),
      likely_(probes_),
      share_(params.share),
      ranked_rows_(share_ == nullptr ? RankPart{0, x.rows()} : share_->rows()),
      resources_(resources),
      quiet_(resources.with_progress({})),
      space_(x, params.metric, quiet_),
      centres_(learn_centres(space_, x.rows(), params, quiet_)),
      own_(x.rows(), "the rows' cells", resources),
      offsets_(params.cells + 1, "the cells", resources),
      members_(x.rows(), "the cells", resources) {
  if (params.recall && control != nullptr) foresee(x, params, *control);
  if (forecast_.needed > 0) likely_ = std::min(forecast_.needed, probes_);
  const RankWindow first = window_from(0, 1);
  const bool at_once = ranks_all() && !space_.has_two_sides();  // the nearest cell is the own one
  if (at_once) {
    make_room(first);
    rank_rows();
  } else {
    assign();
  }
  if (share_ != nullptr) share_->give(own_.data(), 1);
  list_members();
  if (!at_once) rank(first);
}

int64_t CellPartition::batch_rows() const { return std::clamp<int64_t>(ranked_rows_.count, 1, kBatch); }

void CellPartition::foresee(const MatrixView& x, const CellsParams& params, const ControlRows& control) {
  const auto listed = [&](const uint32_t* rows, int64_t count, CellSide side) {
    return space_.listed(rows, count, side, quiet_);
  };
  const auto search = [&](const MatrixView& queries, int64_t most, const Resources& used) {
    if (share_ != nullptr) return share_->search(queries, x, params.metric, most, used);
    return knn(queries, x, {.k = most, .metric = params.metric, .check_finite = false}, used);
  };
  ViewSource source(x);
  const ControlTies ties(control, source, params.metric, search, resources_);
  CentrePlaces places(centres_.view(), listed, kBatch, resources_);
  forecast_ = foresee_probes(*params.recall, control, ties, places, resources_);
}

int64_t CellPartition::pairs(int64_t probes) const {
  const int64_t counted = std::min(probes, ranked_.count);
  std::vector<int64_t> probing(static_cast<size_t>(cells_), 0);
  for (int64_t row = ranked_rows_.first; row < ranked_rows_.end(); ++row) {
    for (int64_t p = 0; p < counted; ++p) ++probing[ranks(row, 0)[p]];
  }
  int64_t pairs = 0;
  for (int64_t cell = 0; cell < cells_; ++cell) pairs += probing[static_cast<size_t>(cell)] * size(cell);
  if (share_ != nullptr) pairs = share_->sum(pairs);
  return pairs_by_probes(pairs, counted, probes, own_.size());
}

// Every row's own cell.
void CellPartition::assign() {
  ProgressMeter meter("cells", ranked_rows_.count, resources_);
  MatrixBuffer memory = space_.memory_for(batch_rows(), quiet_);
  for (int64_t first = ranked_rows_.first; first < ranked_rows_.end(); first += kBatch) {
    const int64_t count = std::min(kBatch, ranked_rows_.end() - first);
    const Neighbors own =
        nearest_centres(space_.range(first, count, CellSide::found, memory, quiet_), centres_.view(), 1, quiet_);
    if (counts_only(quiet_)) return;
    for (int64_t i = 0; i < count; ++i) own_[first + i] = static_cast<uint32_t>(own.ids(i)[0]);
    meter.add(count);
    meter.poll();
  }
}

void CellPartition::list_members() {
  std::fill(offsets_.begin(), offsets_.end(), int64_t{0});
  for (const uint32_t cell : own_) ++offsets_[cell + 1];
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  std::vector<int64_t> next(offsets_.begin(), offsets_.end());
  uint32_t row = 0;
  for (const uint32_t cell : own_) members_[next[cell]++] = row++;
}

void CellPartition::make_room(const RankWindow& window) {
  if (ranks_.size() < ranked_rows_.count * window.count) {
    ranks_ = HostArray<uint32_t>();  // the old ones go before the new ones come
    ranks_ = HostArray<uint32_t>(ranked_rows_.count * window.count, "the cells near each row", resources_);
  }
  ranked_ = window;
}

void CellPartition::rank(const RankWindow& window) {
  make_room(window);
  ranks_all() ? rank_rows() : rank_by_cell();
}

// Among all cells.
void CellPartition::rank_rows() {
  ProgressMeter meter("cells", ranked_rows_.count, resources_);
  const bool two_sides = space_.has_two_sides();
  // Where the own cell need not be the nearest of those that are looked for, one more has to be found.
  const int64_t wanted = std::min(cells_, ranked_.end() + (two_sides ? 1 : 0));
  CellRanks near(centres_.view(), wanted, quiet_);
  MatrixBuffer memory = space_.memory_for(batch_rows(), quiet_);
  for (int64_t first = ranked_rows_.first; first < ranked_rows_.end(); first += kBatch) {
    const int64_t count = std::min(kBatch, ranked_rows_.end() - first);
    const MatrixView looking = space_.range(first, count, CellSide::looking, memory, quiet_);
    near.rank(looking, meter, [&](int64_t i, const uint32_t* found) {
      if (!two_sides) own_[first + i] = found[0];
      uint32_t* const to = ranks_.data() + (first + i - ranked_rows_.first) * ranked_.count;
      put_probes(found, wanted, own_[first + i], nullptr, ranked_, to);
    });
    meter.add(count);
    meter.poll();
  }
}

// Cell by cell, among those whose centres are nearest to its own.
void CellPartition::rank_by_cell() {
  ProgressMeter meter("cells", ranked_rows_.count, resources_);
  const int64_t among = std::min(kCellsRanked, cells_);
  const MatrixView all = centres_.view();
  std::vector<uint32_t> numbers(static_cast<size_t>(among));
  MatrixBuffer chosen(DType::f32, among, space_.cols(), "the cells near a cell", quiet_);
  if (counts_only(quiet_)) {
    const Neighbors around = nearest_centres(all.slice(0, 1), all, among, quiet_);
    const MatrixBuffer rows = space_.listed(nullptr, std::min(kBatch, own_.size()), CellSide::looking, quiet_);
    (void)nearest_centres(rows.view(), chosen.view(), std::min(ranked_.end() + 1, among), quiet_);
    return;
  }
  for (int64_t cell = 0; cell < cells_; ++cell) {
    const std::span<const uint32_t> ranked = ranked_in(cell);
    if (ranked.empty()) continue;
    const Neighbors around = nearest_centres(all.slice(cell, 1), all, among, quiet_);
    for (int64_t j = 0; j < among; ++j) numbers[static_cast<size_t>(j)] = static_cast<uint32_t>(around.ids(0)[j]);
    std::sort(numbers.begin(), numbers.end());  // so that ties go to the smaller cell
    for (int64_t j = 0; j < among; ++j) {
      std::copy_n(all.row(numbers[static_cast<size_t>(j)]), space_.cols() * 4, chosen.mutable_view().row(j));
    }
    const auto rows_here = static_cast<int64_t>(ranked.size());
    for (int64_t first = 0; first < rows_here; first += kBatch) {
      const int64_t count = std::min(kBatch, rows_here - first);
      const uint32_t* const some = ranked.data() + first;
      const MatrixBuffer rows = space_.listed(some, count, CellSide::looking, quiet_);
      const Neighbors near = nearest_centres(rows.view(), chosen.view(), std::min(ranked_.end() + 1, among), quiet_);
      for (int64_t i = 0; i < count; ++i) {
        uint32_t* const ranks = ranks_.data() + (some[i] - ranked_rows_.first) * ranked_.count;
        put_probes(near.ids(i), near.k(), static_cast<uint32_t>(cell), &numbers, ranked_, ranks);
      }
    }
    meter.add(rows_here);
    meter.poll();
  }
}

}  // namespace kith
