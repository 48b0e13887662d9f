#include "graph/cells/cell_partition.hpp"

#include <kith/knn.hpp>

#include "cluster/row_sample.hpp"
#include "core/parallel_for.hpp"
#include "graph/cells/cell_training.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kBatch = 16384;
// Cells near the own one that come first, at least.
constexpr int64_t kNearFirst = 256;

// The centres of cells, learned from some rows.
MatrixBuffer learn_centres(const CellSpace& space, int64_t rows, const CellParams& params, const Resources& resources) {
  const int64_t count = std::min(rows, params.cells * kSampleRowsPerCell);
  const std::vector<uint32_t> sample =
      sample_rows(CounterRng(params.seed, kCellSampleStream), rows, count, resources);
  const MatrixBuffer vectors = space.listed(sample.data(), count, CellSide::found, resources);
  KMeans means(cell_training(params));
  means.fit(vectors.view(), {}, resources);
  MatrixBuffer centres(DType::f32, params.cells, space.cols(), "the cells' centres", resources);
  const MatrixView learned = means.centres();
  for (int64_t i = 0; i < params.cells; ++i) {
    std::copy_n(learned.row(i), space.cols() * 4, centres.mutable_view().row(i));
  }
  return centres;
}

Neighbors nearest(const MatrixView& rows, const MatrixView& centres, int64_t k, const Resources& resources) {
  const KnnParams wish{.k = k, .metric = Metric::l2, .check_finite = false};
  return knn(rows, centres, wish, resources);
}

// What a row probes of the cells found for it, sorted by (distance, cell) but for those at equal distances, whose order is
// set right here. False where the last may be at the distance of one that is not among them.
bool put_ranks(const Neighbors& found, int64_t query, const std::vector<uint32_t>& numbers, bool has_all, uint32_t own,
               uint32_t* ranks, int64_t count, std::vector<std::pair<float, uint32_t>>& scratch) {
  scratch.clear();
  for (int64_t j = 0; j < found.k(); ++j) {
    scratch.emplace_back(found.distances(query)[j], numbers[static_cast<size_t>(found.ids(query)[j])]);
  }
  const auto equal = [&](size_t a) { return !(scratch[a].first < scratch[a + 1].first); };  // of NaN nothing is known
  for (size_t first = 0; first < scratch.size();) {
    size_t end = first + 1;
    while (end < scratch.size() && equal(end - 1)) ++end;
    std::sort(scratch.begin() + static_cast<std::ptrdiff_t>(first), scratch.begin() + static_cast<std::ptrdiff_t>(end),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    if (end == scratch.size() && !has_all) scratch.resize(first);  // others may be as far as these
    first = end;
  }
  int64_t at = 0;
  ranks[at++] = own;
  for (size_t j = 0; j < scratch.size() && at < count; ++j) {
    if (scratch[j].second != own) ranks[at++] = scratch[j].second;
  }
  return at == count;
}

// The end of the wave in which so many probes are made.
int64_t end_of_wave(int64_t probes, int64_t most) {
  int64_t end = wave_end(0, most);
  while (end < std::min(probes, most)) end = wave_end(end, most);
  return end;
}

}  // namespace

int64_t CellPartition::bytes_for(int64_t rows, int64_t cols, const CellParams& params) {
  const int64_t sample = std::min(rows, params.cells * kSampleRowsPerCell);
  const int64_t batch = std::min(rows, kBatch);
  return rows * 4 * (params.probes + 3) + array_bytes<int64_t>(params.cells + 1) +
         array_bytes<float>((sample + 3 * params.cells + 2 * batch) * (cols + 1)) + 24 * batch * (params.probes + 3);
}

CellPartition::CellPartition(const MatrixView& x, const CellParams& params, const Resources& resources)
    : cells_(params.cells),
      probes_(ranked_probes(params)),
      resources_(resources),
      quiet_(resources.with_progress({})),
      space_(x, params.metric, quiet_),
      centres_(learn_centres(space_, x.rows(), params, quiet_)),
      ranks_(x.rows(), "the cells near each row", resources),
      offsets_(params.cells + 1, "the cells", resources),
      members_(x.rows(), "the cells", resources) {
  assign(x);
  // A little more than is likely, since ranking anew takes as long.
  rank(params.likely > 0 ? end_of_wave(params.likely + params.likely / 8, probes_) : probes_);
}

// Every row's own cell.
void CellPartition::assign(const MatrixView& x) {
  ProgressMeter meter("cells", x.rows(), resources_);
  MatrixBuffer memory = space_.memory_for(std::min(kBatch, x.rows()), quiet_);
  for (int64_t first = 0; first < x.rows(); first += kBatch) {
    const int64_t count = std::min(kBatch, x.rows() - first);
    const MatrixView found = space_.range(first, count, CellSide::found, memory, quiet_);
    const Neighbors own = nearest(found, centres_.view(), 1, quiet_);
    for (int64_t i = 0; i < count; ++i) ranks_[first + i] = static_cast<uint32_t>(own.ids(i)[0]);
    meter.add(count);
    meter.poll();
  }
  std::fill(offsets_.begin(), offsets_.end(), int64_t{0});
  for (int64_t row = 0; row < x.rows(); ++row) ++offsets_[ranks_[row] + 1];
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  std::vector<int64_t> next(offsets_.begin(), offsets_.end() - 1);
  for (int64_t row = 0; row < x.rows(); ++row) members_[next[ranks_[row]]++] = static_cast<uint32_t>(row);
}

void CellPartition::rank(int64_t count) {
  count = std::min(count, probes_);
  if (count <= ranked_) return;
  const int64_t rows = members_.size();
  ranks_ = HostArray<uint32_t>();  // the old ones go before the new ones come
  ranks_ = HostArray<uint32_t>(rows * count, "the cells near each row", quiet_);
  ranked_ = count;
  ProgressMeter meter("rank cells", rows, resources_);
  for (int64_t cell = 0; cell < cells_; ++cell) {
    rank_cell(cell);
    meter.add(size(cell));
    meter.poll();
  }
}

void CellPartition::rank_cell(int64_t cell) {
  if (size(cell) == 0) return;
  const MatrixView all = centres_.view();
  // The cells among which the rows choose, those near this one first. A row's own is among them, and one more shows whether
  // the last is at the distance of another.
  const int64_t among = cells_ <= kMostCellsRanked ? cells_ : std::min(kCellsRanked, cells_);
  const int64_t near = among < cells_ ? among : std::min(cells_, std::max(kNearFirst, 2 * ranked_));
  std::vector<uint32_t> numbers;
  std::vector<bool> there(static_cast<size_t>(cells_), false);
  const Neighbors around = nearest(all.slice(cell, 1), all, near, quiet_);
  for (int64_t j = 0; j < near; ++j) {
    numbers.push_back(static_cast<uint32_t>(around.ids(0)[j]));
    there[numbers.back()] = true;
  }
  for (int64_t other = 0; other < cells_ && among == cells_; ++other) {
    if (!there[static_cast<size_t>(other)]) numbers.push_back(static_cast<uint32_t>(other));
  }
  const auto centres_of = [&](const std::vector<uint32_t>& chosen) {
    MatrixBuffer centres(DType::f32, static_cast<int64_t>(chosen.size()), space_.cols(), "the cells near a cell", quiet_);
    for (size_t j = 0; j < chosen.size(); ++j) {
      std::copy_n(all.row(chosen[j]), space_.cols() * 4, centres.mutable_view().row(static_cast<int64_t>(j)));
    }
    return centres;
  };
  const MatrixBuffer ordered = centres_of(numbers);
  const int64_t wanted = std::min(among, ranked_ + 2);
  std::vector<std::pair<float, uint32_t>> scratch;
  std::vector<uint32_t> left;
  const auto own = static_cast<uint32_t>(cell);
  for (int64_t first = 0; first < size(cell); first += kBatch) {
    const int64_t count = std::min(kBatch, size(cell) - first);
    const MatrixBuffer rows = space_.listed(members(cell) + first, count, CellSide::looking, quiet_);
    const Neighbors found = nearest(rows.view(), ordered.view(), wanted, quiet_);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t row = members(cell)[first + i];
      uint32_t* const ranks = ranks_.data() + int64_t{row} * ranked_;
      if (!put_ranks(found, i, numbers, wanted == among, own, ranks, ranked_, scratch)) left.push_back(row);
    }
  }
  if (left.empty()) return;
  // In the order of cells ties come out right by themselves.
  std::sort(numbers.begin(), numbers.end());
  const MatrixBuffer sorted = centres_of(numbers);
  for (size_t first = 0; first < left.size(); first += static_cast<size_t>(kBatch)) {
    const int64_t count = std::min(kBatch, static_cast<int64_t>(left.size() - first));
    const MatrixBuffer rows = space_.listed(left.data() + first, count, CellSide::looking, quiet_);
    const Neighbors found = nearest(rows.view(), sorted.view(), wanted, quiet_);
    for (int64_t i = 0; i < count; ++i) {
      uint32_t* const ranks = ranks_.data() + int64_t{left[first + static_cast<size_t>(i)]} * ranked_;
      put_ranks(found, i, numbers, true, own, ranks, ranked_, scratch);
    }
  }
}

}  // namespace kith
