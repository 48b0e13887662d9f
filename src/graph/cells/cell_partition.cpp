#include "graph/cells/cell_partition.hpp"

#include <kith/knn.hpp>

#include "cluster/row_sample.hpp"
#include "core/parallel_for.hpp"
#include "graph/cells/cell_space.hpp"
#include "graph/cells/cell_training.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kBatch = 16384;

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

// A row's own cell, then those of `found` that are not it.
void put_ranks(const int64_t* found, int64_t count, uint32_t own, const uint32_t* numbers, uint32_t* ranks,
               int64_t probes) {
  int64_t at = 0;
  ranks[at++] = own;
  for (int64_t j = 0; j < count && at < probes; ++j) {
    const auto cell = numbers == nullptr ? static_cast<uint32_t>(found[j]) : numbers[found[j]];
    if (cell != own) ranks[at++] = cell;
  }
}

}  // namespace

int64_t CellPartition::bytes_for(int64_t rows, int64_t cols, const CellParams& params) {
  const int64_t sample = std::min(rows, params.cells * kSampleRowsPerCell);
  const int64_t batch = std::min(rows, kBatch);
  return rows * 4 * (params.probes + 2) + array_bytes<int64_t>(params.cells + 1) +
         array_bytes<float>((sample + 3 * params.cells + batch) * (cols + 1)) + 24 * batch * (params.probes + 1);
}

CellPartition::CellPartition(const MatrixView& x, const CellParams& params, const Resources& resources)
    : cells_(params.cells),
      probes_(ranked_probes(params)),
      ranks_(x.rows() * probes_, "the cells near each row", resources),
      offsets_(params.cells + 1, "the cells", resources),
      members_(x.rows(), "the cells", resources) {
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("cells", x.rows(), resources);
  const CellSpace space(x, params.metric, quiet);
  const MatrixBuffer centres = learn_centres(space, x.rows(), params, quiet);
  const bool ranks_all = cells_ <= kMostCellsRanked;
  // With own cells last among the nearest of what looks for others, one more has to be found.
  const int64_t wanted = std::min(cells_, probes_ + (space.has_two_sides() || !ranks_all ? 1 : 0));

  // Every row's own cell, and where all cells are ranked its probes.
  MatrixBuffer memory = space.memory_for(std::min(kBatch, x.rows()), quiet);
  for (int64_t first = 0; first < x.rows(); first += kBatch) {
    const int64_t count = std::min(kBatch, x.rows() - first);
    const bool both = ranks_all && !space.has_two_sides();
    const MatrixView found = space.range(first, count, CellSide::found, memory, quiet);
    const Neighbors own = nearest(found, centres.view(), both ? wanted : 1, quiet);
    for (int64_t i = 0; i < count; ++i) {
      const auto cell = static_cast<uint32_t>(own.ids(i)[0]);
      put_ranks(own.ids(i), own.k(), cell, nullptr, ranks_.data() + (first + i) * probes_, both ? probes_ : 1);
    }
    if (ranks_all && !both && probes_ > 1) {
      const MatrixView looking = space.range(first, count, CellSide::looking, memory, quiet);
      const Neighbors near = nearest(looking, centres.view(), wanted, quiet);
      for (int64_t i = 0; i < count; ++i) {
        uint32_t* const ranks = ranks_.data() + (first + i) * probes_;
        put_ranks(near.ids(i), near.k(), ranks[0], nullptr, ranks, probes_);
      }
    }
    meter.add(count);
    meter.poll();
  }

  std::fill(offsets_.begin(), offsets_.end(), int64_t{0});
  for (int64_t row = 0; row < x.rows(); ++row) ++offsets_[this->ranks(row)[0] + 1];
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  std::vector<int64_t> next(offsets_.begin(), offsets_.end() - 1);
  for (int64_t row = 0; row < x.rows(); ++row) members_[next[this->ranks(row)[0]]++] = static_cast<uint32_t>(row);

  if (ranks_all || probes_ == 1) return;
  // Cell by cell, among those whose centres are nearest to its own.
  const int64_t ranked = std::min(kCellsRanked, cells_);
  const MatrixView all = centres.view();
  std::vector<uint32_t> numbers(static_cast<size_t>(ranked));
  MatrixBuffer chosen(DType::f32, ranked, space.cols(), "the cells near a cell", quiet);
  for (int64_t cell = 0; cell < cells_; ++cell) {
    if (size(cell) == 0) continue;
    const Neighbors around = nearest(all.slice(cell, 1), all, ranked, quiet);
    for (int64_t j = 0; j < ranked; ++j) numbers[static_cast<size_t>(j)] = static_cast<uint32_t>(around.ids(0)[j]);
    std::sort(numbers.begin(), numbers.end());  // so that ties go to the smaller cell
    for (int64_t j = 0; j < ranked; ++j) {
      std::copy_n(all.row(numbers[static_cast<size_t>(j)]), space.cols() * 4, chosen.mutable_view().row(j));
    }
    for (int64_t first = 0; first < size(cell); first += kBatch) {
      const int64_t count = std::min(kBatch, size(cell) - first);
      const MatrixBuffer rows = space.listed(members(cell) + first, count, CellSide::looking, quiet);
      const Neighbors near = nearest(rows.view(), chosen.view(), std::min(wanted, ranked), quiet);
      for (int64_t i = 0; i < count; ++i) {
        uint32_t* const ranks = ranks_.data() + int64_t{members(cell)[first + i]} * probes_;
        put_ranks(near.ids(i), near.k(), ranks[0], numbers.data(), ranks, probes_);
      }
    }
    meter.poll();
  }
}

}  // namespace kith
