#include "graph/build/cells/cell_partition_cuda.hpp"

#include <kith/knn.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_info.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/cell_ranks_cuda.hpp"
#include "graph/lists/device_share_cuda.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kDeviceBatch = int64_t{1} << 18;
constexpr int64_t kMostFound = (int64_t{1} << 30) / 12;  // of a batch's ranks
constexpr int64_t kNearRows = int64_t{1} << 17;          // whose keys with all cells near theirs are computed at a time

constexpr int64_t kPlaceKeys = int64_t{1} << 24;  // of rows and all cells, at a time
constexpr int64_t kCellBatch = 8192;  // cells whose nearest are searched at a time
static_assert(kCellsRanked <= kMostSorted);

}  // namespace

NearCells::NearCells(const MatrixView& centres, const uint32_t* own, const std::vector<int64_t>& sizes,
                     const RankPart& rows, std::shared_ptr<const DeviceContext> context, const Resources& resources)
    : count_(std::min(kCellsRanked, centres.rows())),
      numbers_(centres.rows() * count_, "the cells near each cell", context, resources),
      members_(rows.count, "the rows of each cell", context, resources) {
  const int64_t cells = centres.rows();
  const int64_t batch = std::min(cells, kCellBatch);
  const DeviceArray<int64_t> ids(batch * count_, "the cells near some cells", context, resources);
  const DeviceArray<float> distances(batch * count_, "the cells near some cells", context, resources);
  for (int64_t first = 0; first < cells; first += batch) {
    const NeighborsView found{ids.data(), distances.data(), std::min(batch, cells - first), count_, centres.space()};
    call_or_count(resources, [&](const Resources& used) {
      knn(centres.slice(first, found.queries), centres, found,
          {.k = count_, .metric = Metric::l2, .check_finite = false}, used);
    });
    launch_sort_numbers(found.ids, found.queries, count_, numbers_.data() + first * count_, context->stream());
  }

  std::vector<uint32_t> starts(sizes.size());
  uint32_t start = 0;
  for (size_t cell = 0; cell < sizes.size(); ++cell) {
    starts[cell] = start;
    start += static_cast<uint32_t>(sizes[cell]);
  }
  const DeviceArray<uint32_t> next(cells, "the cells", context, resources);
  context->copy_values(next.data(), starts.data(), cells);
  launch_put_places({own, 1, rows.count, 0, 1, rows.first}, cells, next.data(), members_.data(), nullptr,
                    context->stream());
  context->synchronize();  // `starts` is on its way
}

CellPartitionCuda::CellPartitionCuda(const GraphRowsCuda& rows, const CellsParams& params, const ControlRows& control,
                                     const ControlTies* ties, const GraphShare* share,
                                     std::shared_ptr<const DeviceContext> context, const Resources& resources)
    : rows_(rows),
      context_(std::move(context)),
      resources_(resources.with_progress({}).with_log({})),
      space_(rows, params.metric, context_, resources_),
      share_(share),
      ranked_rows_(share_ == nullptr ? RankPart{0, rows.view().rows()} : share_->rows()),
      cells_(params.cells),
      probes_(ranked_probes(params)),
      likely_(probes_),
      own_(rows.view().rows(), "the cells", context_, resources_) {
  learn_centres(params);
  const bool leads = share_ == nullptr || share_->leads();
  if (params.recall && leads) {
    forecast_ = foresee_probes(*params.recall, control, *ties, *this, resources.with_log({}));
  }
  if (share_ != nullptr) share_->take_first(&forecast_, 1);
  if (forecast_.needed > 0) likely_ = std::min(forecast_.needed, probes_);
}

// The first of parts learns for all: their rows of the sample are few, and k-means would exchange much for them.
void CellPartitionCuda::learn_centres(const CellsParams& params) {
  std::optional<KMeans> means;
  if (share_ == nullptr || share_->leads()) means = learn_from_sample(params);
  centre_memory_ = DeviceArray<float>(cells_ * space_.cols(), "the cells' centres", context_, resources_);
  centres_ = MatrixView(centre_memory_.data(), DType::f32, {cells_, space_.cols(), space_.cols()},
                        MemorySpace::cuda(context_->device()));
  if (means) put_centres(means->snapshot().centres);
  if (share_ != nullptr) {
    auto* const there = reinterpret_cast<std::byte*>(centre_memory_.data());
    take_first_on_device(*share_, there, centre_memory_.bytes(), *context_, resources_);
  }
}

// None where memory is only counted.
std::optional<KMeans> CellPartitionCuda::learn_from_sample(const CellsParams& params) const {
  const int64_t all = rows_.view().rows();
  const int64_t count = std::min(all, params.cells * kSampleRowsPerCell);
  const std::vector<uint32_t> sample = sample_rows(CounterRng(params.seed, kCellSampleStream), all, count, resources_);
  const DeviceArray<uint32_t> list(count, "a sample of the rows", context_, resources_);
  const DeviceArray<float> vectors(count * space_.cols(), "a sample of the rows", context_, resources_);
  context_->copy_values(list.data(), sample.data(), count);
  const MatrixView seen = space_.listed(list.data(), count, CellSide::found, vectors.data());
  std::optional<KMeans> means;
  call_or_count(resources_, [&](const Resources& used) { means = learn_cells(seen, params, used); });
  return means;
}

void CellPartitionCuda::put_centres(const MatrixView& learned) const {
  for (int64_t i = 0; learned.row_stride() != space_.cols() && i < cells_; ++i) {
    context_->copy_values(centre_memory_.data() + i * space_.cols(), typed_row<float>(learned, i), space_.cols());
  }
  if (learned.row_stride() == space_.cols()) {
    context_->copy(centre_memory_.data(), learned.data(), centre_memory_.bytes());
  }
  context_->synchronize();
}

void CellPartitionCuda::search(const MatrixView& queries, const MatrixView& centres, int64_t k) const {
  const KnnParams params{.k = k, .metric = Metric::l2, .check_finite = false};
  const NeighborsView out{found_ids_.data(), found_distances_.data(), queries.rows(), k,
                          MemorySpace::cuda(context_->device())};
  call_or_count(resources_, [&](const Resources& used) { knn(queries, centres, out, params, used); });
}

void CellPartitionCuda::find_own(std::span<const uint32_t> rows, uint32_t* own) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t batch = std::clamp<int64_t>(kPlaceKeys / space_.cols(), 1, count);
  const DeviceArray<uint32_t> list(count, "rows near the control rows", context_, resources_);
  const DeviceArray<float> vectors(batch * space_.cols(), "rows near the control rows", context_, resources_);
  found_ids_ = DeviceArray<int64_t>(batch, "the cells near some rows", context_, resources_);
  found_distances_ = DeviceArray<float>(batch, "the cells near some rows", context_, resources_);
  const HostArray<int64_t> found(batch, "the cells near some rows", resources_);
  context_->copy_values(list.data(), rows.data(), count);
  for (int64_t first = 0; first < count; first += batch) {
    const int64_t some = std::min(batch, count - first);
    search(space_.listed(list.data() + first, some, CellSide::found, vectors.data()), centres_, 1);
    context_->copy_values(found.data(), found_ids_.data(), some);
    context_->synchronize();
    if (!counts_only(resources_)) std::copy_n(found.begin(), some, own + first);
  }
  found_ids_ = {};
  found_distances_ = {};
}

void CellPartitionCuda::find_places(std::span<const uint32_t> rows, std::span<const uint32_t> own,
                                    std::span<const PlaceQuestion> questions, uint32_t* places) {
  const auto count = static_cast<int64_t>(rows.size());
  const auto asked = static_cast<int64_t>(questions.size());
  const int64_t batch = std::clamp<int64_t>(kPlaceKeys / std::max(cells_, space_.cols()), 1, count);
  const DeviceArray<uint32_t> list(count, "rows near the control rows", context_, resources_);
  const DeviceArray<uint32_t> own_there(count, "rows near the control rows", context_, resources_);
  const DeviceArray<PlaceQuestion> asked_there(asked, "rows near the control rows", context_, resources_);
  const DeviceArray<uint32_t> found(asked, "rows near the control rows", context_, resources_);
  const DeviceArray<float> vectors(batch * space_.cols(), "rows near the control rows", context_, resources_);
  const DeviceArray<uint32_t> keys(batch * cells_, "rows near the control rows", context_, resources_);
  context_->copy_values(list.data(), rows.data(), count);
  context_->copy_values(own_there.data(), own.data(), count);
  context_->copy_values(asked_there.data(), questions.data(), asked);
  int64_t at = 0;  // questions that are answered
  for (int64_t first = 0; first < count; first += batch) {
    const int64_t some = std::min(batch, count - first);
    const MatrixView looking = space_.listed(list.data() + first, some, CellSide::looking, vectors.data());
    launch_distance({device_rows(looking), device_rows(centres_), space_.cols(), KeyKind::l2, keys.data(), cells_},
                    context_->stream());
    const int64_t end =
        std::partition_point(questions.begin() + at, questions.end(),
                             [&](const PlaceQuestion& question) { return question.row < first + some; }) -
        questions.begin();
    launch_find_places({keys.data(), cells_, static_cast<uint32_t>(first), own_there.data() + first,
                        asked_there.data() + at, end - at, found.data() + at},
                       context_->stream());
    at = end;
  }
  context_->copy_values(places, found.data(), asked);
  context_->synchronize();
}

int64_t CellPartitionCuda::pairs(int64_t probes) const {
  const int64_t counted = std::min(probes, ranked_.count);
  const DeviceArray<uint32_t> counts(cells_, "the cells", context_, resources_);
  context_->fill(counts.data(), 0, cells_);
  launch_count_cells(columns(0, counted), cells_, counts.data(), context_->stream());
  std::vector<uint32_t> probing(static_cast<size_t>(cells_));
  context_->copy_values(probing.data(), counts.data(), cells_);
  context_->synchronize();
  int64_t pairs = 0;
  for (size_t cell = 0; cell < probing.size(); ++cell) pairs += probing[cell] * sizes_[cell];
  if (share_ != nullptr) pairs = share_->sum(pairs);
  return pairs_by_probes(pairs, counted, probes, own_.size());
}

// Cells that are looked for: with own cells last among the nearest of what looks for others, one more has to be found.
int64_t CellPartitionCuda::wanted_for(int64_t probes) const {
  return ranks_all() ? std::min(cells_, probes + (space_.has_two_sides() ? 1 : 0)) : 1;
}

// The rows of a batch. Where memory is only counted as many as with few probes: these may come first.
int64_t CellPartitionCuda::batch_for(int64_t wanted) const {
  const int64_t most = std::clamp<int64_t>(ranked_rows_.count, 1, kDeviceBatch);
  return counts_only(resources_) ? most : std::clamp<int64_t>(kMostFound / wanted, 1, most);
}

void CellPartitionCuda::rank(const RankWindow& window) {
  ranked_ = window;
  ranks_ = {};  // the old ones go before the new ones come
  ranks_ = DeviceArray<uint32_t>(ranked_rows_.count * window.count, "the cells near each row", context_, resources_);
  const int64_t batch = batch_for(wanted_for(ranked_.end()));
  const int64_t found = std::min(batch * wanted_for(ranked_.end()), kMostFound);
  found_ids_ = DeviceArray<int64_t>(found, "the cells near some rows", context_, resources_);
  found_distances_ = DeviceArray<float>(found, "the cells near some rows", context_, resources_);
  if (!space_.is_identity()) {
    made_ = DeviceArray<float>(batch * space_.cols(), "rows as cells see them", context_, resources_);
  }
  rank_all();
  if (share_ != nullptr && !has_own_) {
    give_on_device(*share_, RowsOnDevice::of(own_, 1), *context_, resources_);
  }
  has_own_ = true;
  if (sizes_.empty()) {
    sizes_ = sizes_among({0, own_.size()});
    ranked_sizes_ = share_ == nullptr ? sizes_ : sizes_among(ranked_rows_);
  }
  if (!ranks_all() && ranked_.end() > 1) rank_near();
  found_ids_ = {};
  found_distances_ = {};
  made_ = {};
}

// Own cells, where they are not known, and where all cells are ranked the others.
void CellPartitionCuda::rank_all() {
  const bool both = ranks_all() && !space_.has_two_sides();
  const int64_t wanted = wanted_for(ranked_.end());
  const int64_t batch = batch_for(wanted);
  for (int64_t first = ranked_rows_.first; first < ranked_rows_.end(); first += batch) {
    resources_.check_cancelled();
    const int64_t count = std::min(batch, ranked_rows_.end() - first);
    RanksTask task;
    task.found = found_ids_.data();
    task.count = count;
    task.first = first - ranked_rows_.first;
    task.own = own_.data() + ranked_rows_.first;
    task.first_probe = ranked_.first;
    task.probes = ranked_.count;
    uint32_t* const ranks = ranks_.data();
    if (both || !has_own_) {
      task.stride = both ? wanted : 1;
      search(space_.range(first, count, CellSide::found, made_.data()), centres_, task.stride);
      task.sets_own = true;
      task.ranks = both || ranked_.end() == 1 ? ranks : nullptr;
      launch_put_ranks(task, context_->stream());
    }
    if (!both && ranks_all() && ranked_.end() > 1) {
      task.stride = wanted;
      search(space_.range(first, count, CellSide::looking, made_.data()), centres_, wanted);
      task.sets_own = false;
      task.ranks = ranks;
      launch_put_ranks(task, context_->stream());
    }
  }
}

// Among those whose centres are nearest to the own one's, all keys of some cells' rows at a time.
void CellPartitionCuda::rank_near() {
  if (ranked_rows_.count == 0) return;
  if (!near_) {
    near_.emplace(centres_, own() + ranked_rows_.first, ranked_sizes_, ranked_rows_, context_, resources_);
  }
  const NearCells& near = *near_;
  const int64_t wanted = std::min({cells_, ranked_.end() + 1, near.count()});
  const int64_t batch = std::min(ranked_rows_.count, kNearRows);
  const SelectProblem problem{.rows = batch, .cols = near.count(), .k = wanted};
  const int multiprocessors = cuda_device_when_idle(context_->device()).multiprocessors;
  const SelectPlan plan = plan_select(problem, multiprocessors);
  const DeviceArray<float> keys(batch * near.count(), "the cells near some rows", context_, resources_);
  const DeviceArray<float> distances(batch * wanted, "the cells near some rows", context_, resources_);
  const DeviceArray<int32_t> columns(batch * wanted, "the cells near some rows", context_, resources_);
  const DeviceBuffer selection(plan.workspace_bytes, "the cells near some rows", context_, resources_);
  int64_t cell = 0;
  int64_t in_cell = 0;  // rows of it that are done
  for (int64_t first = 0; first < ranked_rows_.count; first += batch) {
    resources_.check_cancelled();
    const int64_t count = std::min(batch, ranked_rows_.count - first);
    DeviceRowsView rows = rows_.rows();
    rows.list = near.members() + first;
    rows.count = count;
    if (!space_.is_identity())
      rows = device_rows(space_.listed(near.members() + first, count, CellSide::looking, made_.data()));
    for (int64_t at = 0; at < count;) {
      const int64_t some = std::min(ranked_sizes_[static_cast<size_t>(cell)] - in_cell, count - at);
      if (some > 0) {
        DeviceRowsView others = device_rows(centres_);
        others.list = near.numbers(cell);
        others.count = near.count();
        DistanceTask task{slice_rows(rows, at, some),
                          others,
                          space_.cols(),
                          KeyKind::l2,
                          reinterpret_cast<uint32_t*>(keys.data()) + at * near.count(),
                          near.count()};
        task.form = KeyForm::plain;
        launch_distance(task, context_->stream());
      }
      at += some;
      in_cell += some;
      if (in_cell == ranked_sizes_[static_cast<size_t>(cell)]) {
        ++cell;
        in_cell = 0;
      }
    }
    const SelectInput input{keys.data(), count, near.count(), near.count()};
    const SelectProblem here = problem_of(input, wanted, SelectOrder::smallest);
    launch_select_rows(input, {distances.data(), columns.data(), nullptr}, here, plan_select(here, multiprocessors),
                       selection.data(), context_->stream());
    launch_put_near_ranks({columns.data(), wanted, count, near.members() + first, own(), nullptr, near.numbers(0),
                           near.count(), ranks_.data(), ranked_.first, ranked_.count, ranked_rows_.first},
                          context_->stream());
  }
}

// How many of some rows are in each cell.
std::vector<int64_t> CellPartitionCuda::sizes_among(const RankPart& rows) const {
  const DeviceArray<uint32_t> counts(cells_, "the cells", context_, resources_);
  context_->fill(counts.data(), 0, cells_);
  launch_count_cells({own() + rows.first, 1, rows.count, 0, 1}, cells_, counts.data(), context_->stream());
  std::vector<uint32_t> found(static_cast<size_t>(cells_));
  context_->copy_values(found.data(), counts.data(), cells_);
  context_->synchronize();
  if (!counts_only(resources_)) return {found.begin(), found.end()};
  std::vector<int64_t> most_tiles(static_cast<size_t>(cells_), 1);
  most_tiles.back() = rows.count - cells_ + 1;
  return most_tiles;
}

}  // namespace kith
