// Waves on a GPU: the rows that probe a cell in a wave are sorted by cell, and compared with the rows of their cell
// (cell_compare_cuda.hpp), which lie cell by cell.
#include "graph/build/cells/cells.hpp"

#include <kith/matrix_buffer.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_info.hpp"
#include "graph/build/cells/cell_compare_cuda.hpp"
#include "graph/build/cells/cell_items.hpp"
#include "graph/build/cells/cell_operands_cuda.hpp"
#include "graph/build/cells/cell_partition_cuda.hpp"
#include "graph/build/cells/cell_ranks_cuda.hpp"
#include "graph/build/cells/cell_workspace_cuda.hpp"
#include "graph/lists/device_share_cuda.hpp"
#include "graph/lists/graph_lists_cuda.hpp"
#include "graph/lists/graph_share.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/operands_cuda.hpp"
#include "rows/row_source.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace kith {
namespace {

class CellStepsCuda final : public CellSteps {
 public:
  CellStepsCuda(const GraphListsCuda& lists, const CellsParams& params)
      : rows_(lists.collection()),
        lists_(lists.lists()),
        context_(lists.context()),
        resources_(lists.resources()),
        metric_(params.metric),
        params_(params),
        control_(lists.control()),
        share_(lists.share()),
        compare_(context_, resources_) {
    operands_.kind = key_kind(metric_);
    operands_.dtype = rows_.rows().dtype;
    operands_.type = operand_type(operands_.kind, operands_.dtype, operands_.dtype, rows_.cols());
    operands_.cols = rows_.cols();
    operands_.chunks = operand_chunks(operands_.cols, operand_value_bytes(operands_.type));
    look_at_control_rows();
    if (!params.recall) return;
    ViewSource source(rows_.view());
    const auto search = [&](const MatrixView& queries, int64_t most, const Resources& used) {
      return lists.search(queries, most, used);
    };
    ties_.emplace(control_, source, metric_, search, resources_.with_log({}));
    forecast_.mean_near = ties_->mean_near();
    forecast_.crowded = ties_->is_crowded();
  }

  void learn() override {
    if (cells_) return;
    cells_.emplace(rows_, params_, control_, ties_ ? &*ties_ : nullptr, share_, context_, resources_);
    forecast_ = cells_->forecast();
    ties_.reset();
  }

  void cut() override {
    if (layout_) return;
    learn();
    cells_->rank(cells_->window_from(0, 1));
    layout_.emplace(cells_->sizes());
    place_rows();
    make_operands();
    make_space();
  }

  int64_t probes() const override { return ranked_probes(params_); }
  const ProbeForecast& forecast() const override { return forecast_; }
  int64_t pairs(int64_t probes) const override { return cells_->pairs(probes); }
  double blur() const override { return blur_; }

  void count_waves(int64_t widest) override {
    rank(last_rank_window(probes(), lists_.rows));
    make_slots(std::min(widest, probes_at_once()) * own_rows() + layout_->cells() * kQueryTile);
  }

  int64_t wave(int64_t first, int64_t end, ProgressMeter& meter) override {
    int64_t pairs = 0;
    for (int64_t at = first; at < end;) {
      if (!cells_->ranked().holds(at)) rank(cells_->window_from(at, end));
      const int64_t next = std::min({at + probes_at_once(), cells_->ranked().end(), end});
      pairs += part(at, next, meter);
      at = next;
    }
    if (share_ == nullptr) return pairs;
    join_on_device(*share_, lists_, first == 0, context_, resources_);
    return share_->sum(pairs);
  }

 private:
  // The rows whose probes are made here.
  int64_t own_rows() const { return cells_->ranked_rows().count; }

  // For pieces of waves, as large as there is memory to spare for: half of it, and a quarter for slots.
  void make_space() {
    const int64_t largest = context_->counts_only() ? lists_.rows : largest_cell();
    const int64_t spare = std::min(SpareDeviceMemory::of(resources_), idle_bytes() / parts());
    compare_.take_space({lists_.rows, lists_.length, operands_.chunks, layout_->cells(), largest}, spare / 2);
    most_slots_ = std::min(compare_.space().slots, own_rows() + spare / 4 / array_bytes<uint32_t>(1));
  }
  void rank(const RankWindow& window) {
    compare_.free_space();
    slots_ = {};
    cells_->rank(window);
    make_space();
  }
  void make_slots(int64_t count) {
    slots_ = {};  // the old ones go before the new ones come
    slots_ = DeviceArray<uint32_t>(count, "the rows that probe each cell", context_, resources_);
  }
  // A part of a wave at a time, where its slots would take too much memory.
  int64_t probes_at_once() const {
    return std::max<int64_t>(most_slots_ / (own_rows() + layout_->cells() * kQueryTile), 1);
  }
  int64_t largest_cell() const { return *std::max_element(layout_->sizes.begin(), layout_->sizes.end()); }

  // What the device has free, for Kith.
  int64_t idle_bytes() const {
    return cuda_device(context_->device()).memory_free;
  }
  // All may be of this device.
  int parts() const { return share_ == nullptr ? 1 : share_->ranks().size(); }
  cudaStream_t stream() const { return context_->stream(); }

  // Every row to its place, cell by cell.
  void place_rows() {
    const int64_t places = layout_->places();
    place_rows_ = DeviceArray<uint32_t>(places, "the rows of each cell", context_, resources_);
    row_places_ = DeviceArray<uint32_t>(lists_.rows, "the rows of each cell", context_, resources_);
    const auto cells = static_cast<int64_t>(cells_->sizes().size());
    const DeviceArray<uint32_t> next(cells, "the cells", context_, resources_);
    std::vector<uint32_t> first;
    for (const int64_t tile : layout_->first_tiles) first.push_back(static_cast<uint32_t>(tile * kOperandTile));
    context_->copy_values(next.data(), first.data(), cells);
    context_->fill(place_rows_.data(), 0xFF, places);
    launch_put_places({cells_->own(), 1, lists_.rows, 0, 1}, cells, next.data(), place_rows_.data(), row_places_.data(),
                      stream());
    context_->synchronize();  // `first` is on its way
  }

  void make_operands() {
    const int64_t places = layout_->places();
    operands_.places = places;
    const CellOperandSpace space(operands_.cols, operands_.chunks, places);
    operand_memory_ = DeviceBuffer(space.bytes, "the cells' operands", context_, resources_);
    std::byte* const memory = operand_memory_.data();
    operands_.place_rows = place_rows_.data();
    operands_.operands = space.operands.in(memory);
    operands_.terms = space.terms.in(memory);
    operands_.pair_terms = space.pair_terms.in(memory);
    operands_.own = space.own.in(memory);
    operands_.norms = space.norms.in(memory);
    operands_.limits = space.limits.in(memory);
    operands_.bounds = space.bounds.in(memory);

    const DeviceArray<uint32_t> list(places, "the cells' rows", context_, resources_);
    launch_operand_list(operands_.place_rows, places, list.data(), stream());
    weigh(round_rows(list, space, memory, [&] { launch_finish_operands(operands_, stream()); }));
  }

  // As operands they say how much products tell of the rows, before all are put into cells.
  void look_at_control_rows() {
    const auto count = static_cast<int64_t>(control_.rows().size());
    if (count == 0) return;
    const CellOperandSpace space(operands_.cols, operands_.chunks, count);
    const DeviceBuffer memory(space.bytes, "the control rows", context_, resources_);
    const DeviceArray<uint32_t> list(count, "the control rows", context_, resources_);
    context_->copy_values(list.data(), control_.rows().data(), count);
    weigh(round_rows(list, space, memory.data(), [] {}));
  }

  // Listed rows become operands and terms in this space; what was measured of them. finish() is enqueued after that.
  template <typename Finish>
  BaseBounds round_rows(const DeviceArray<uint32_t>& list, const CellOperandSpace& space, std::byte* memory,
                       const Finish& finish) {
    OperandTask task;
    task.rows = rows_.rows();
    task.rows.list = list.data();
    task.rows.count = list.size();
    DeviceArray<double> norms;
    if (task.rows.inverse_norms != nullptr) {
      norms = DeviceArray<double>(list.size(), "the cells' norms", context_, resources_);
      launch_gather_norms(rows_.rows().inverse_norms, list.data(), list.size(), norms.data(), stream());
      task.rows.inverse_norms = norms.data();
    }
    task.cols = operands_.cols;
    task.kind = operands_.kind;
    task.type = operands_.type;
    task.centre = space.centre.in(memory);
    task.base_bounds = space.bounds.in(memory);
    task.operands = space.operands.in(memory);
    context_->fill(task.base_bounds, 0, 1);
    launch_sample(task, stream());
    launch_base_operands(task, {.terms = space.terms.in(memory), .first_bad = nullptr}, stream());
    finish();
    BaseBounds bounds = {};
    context_->copy_values(&bounds, task.base_bounds, 1);
    context_->synchronize();
    return bounds;
  }

  void weigh(const BaseBounds& bounds) {
    const int64_t most = operands_.type == OperandType::bytes ? kWindowMostCols : kWindowMostHalfCols;
    by_products_ = bounds.unsure == 0 && operands_.cols <= most;
    blur_ = by_products_ ? blur_of(bounds.rows, bounds.sample_largest) : 1;
  }

  // How little products tell of rows of such norms, from 0 to 1, for half of the control rows: whether their error is
  // large beside the distance of the last neighbour. Then many pairs of a cell are within it, since rows near each
  // other are often about as far apart.
  double blur_of(const OperandBounds& rows, float sample_largest) const {
    constexpr double kAllBlurred = 0.15;  // of the squared distance
    const bool exact_products = operands_.type == OperandType::bytes || operands_.kind == KeyKind::inner_product;
    if (exact_products || context_->counts_only()) return 0;
    const WindowProblem problem{operands_.kind, false, operands_.cols, operand_scale(sample_largest)};
    const double norm = rows.norm;
    const double error = value_error(problem, {rows, norm * norm, 0}, rows);
    std::vector<double> blurs;
    for (int64_t i = 0; i < static_cast<int64_t>(control_.rows().size()); ++i) {
      const double key = key_of_ordered(control_.last_key(i));
      const double square = operands_.kind == KeyKind::l2       ? key * key
                            : operands_.kind == KeyKind::cosine ? 2 * key
                                                                : key;
      const double distance = std::sqrt(std::max(square, 0.0)) * problem.scale;
      const double widened = std::sqrt(distance * distance + 4 * error) + 4.0 * rows.residual;
      const double added = distance > 0 ? widened * widened / (distance * distance) - 1 : 0;  // equal rows: see ties
      blurs.push_back(std::min(added / kAllBlurred, 1.0));
    }
    const auto middle = blurs.begin() + static_cast<int64_t>(blurs.size() / 2);
    std::nth_element(blurs.begin(), middle, blurs.end());
    return *middle;
  }

  // Some probes of every row, or of this part's rows.
  int64_t part(int64_t first, int64_t end, ProgressMeter& meter) {
    const WaveTiles wave = collect(first, end);
    const PairKeyRows keys{rows_.rows(), operands_.cols, operands_.kind};
    compare_.compare({keys, operands_, lists_, nullptr, by_products_}, *layout_, wave, slots_.data(), first == 0,
                     meter);
    meter.add(own_rows() * (end - first));
    meter.poll();
    return wave.pairs;
  }

  // Sorts the rows by the cells that they probe.
  WaveTiles collect(int64_t first, int64_t end) {
    const CellColumns columns = cells_->columns(first, end);
    const auto cells = static_cast<int64_t>(cells_->sizes().size());
    uint32_t* const next = compare_.at(compare_.counters());
    context_->fill(next, 0, cells);
    launch_count_cells(columns, cells, next, stream());
    std::vector<uint32_t> probing(static_cast<size_t>(cells));
    context_->copy_values(probing.data(), next, cells);
    context_->synchronize();
    WaveTiles wave(*layout_, probing);
    if (wave.slots() > slots_.size()) make_slots(wave.slots());
    context_->copy_values(next, wave.first_slots.data(), cells);
    context_->fill(slots_.data(), 0xFF, wave.slots());
    launch_put_slots(columns, cells, row_places_.data(), next, slots_.data(), stream());
    return wave;
  }

  const GraphRowsCuda& rows_;
  const DeviceWorkingLists lists_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const Metric metric_;
  const CellsParams params_;
  const ControlRows& control_;
  const GraphShare* const share_;
  std::optional<ControlTies> ties_;
  ProbeForecast forecast_;
  std::optional<CellPartitionCuda> cells_;
  std::optional<CellLayout> layout_;
  CellCompareCuda compare_;
  int64_t most_slots_ = 0;
  DeviceArray<uint32_t> place_rows_;  // the row at each place
  DeviceArray<uint32_t> row_places_;  // the place of each row
  DeviceBuffer operand_memory_;
  DeviceArray<uint32_t> slots_;
  CellOperands operands_;
  bool by_products_ = true;
  double blur_ = 0;
};

// Waves by a metric that is no product: the CPU compares, and the lists are copied there and back. The GPU's waves are
// products. What cells begin NN-Descent with is little by other metrics, and must be the same bytes. Memory on the
// host: the rows, the lists, and what the CPU's steps take.
class CellStepsOnHost final : public CellSteps {
 public:
  CellStepsOnHost(const GraphListsCuda& lists, const CellsParams& params)
      : there_(lists.lists()),
        context_(lists.context()),
        resources_(lists.resources().with_device(Device::cpu())),
        matrix_(lists.view().dtype(), there_.rows, lists.view().cols(), "the rows", resources_),
        working_(there_.rows, there_.length, resources_) {
    const MatrixView& x = lists.view();
    const auto row_bytes = static_cast<size_t>(x.cols() * size_of(x.dtype()));
    const auto pitch = static_cast<size_t>(x.row_stride() * size_of(x.dtype()));
    if (!context_->counts_only()) {
      KITH_CUDA_CHECK(cudaMemcpy2DAsync(matrix_.mutable_view().row(0), row_bytes, x.data(), pitch, row_bytes,
                                        static_cast<size_t>(x.rows()), cudaMemcpyDeviceToHost, context_->stream()));
    }
    context_->synchronize();
    pairs_.emplace(matrix_.view(), key_kind(params.metric), resources_);
    lists_.emplace(*pairs_, params.metric, &lists.control(), working_, resources_);
    CellsParams here = params;
    here.keeps_order = false;  // nobody would look at it
    steps_ = make_cell_steps_cpu(*lists_, here);
  }

  int64_t probes() const override { return steps_->probes(); }
  const ProbeForecast& forecast() const override { return steps_->forecast(); }
  int64_t pairs(int64_t probes) const override { return steps_->pairs(probes); }
  void count_waves(int64_t widest) override { steps_->count_waves(widest); }
  int64_t wave(int64_t first, int64_t end, ProgressMeter& meter) override {
    const int64_t entries = there_.rows * there_.length;
    context_->copy_values(working_.list(0), there_.entries, entries);
    context_->synchronize();
    for (int64_t row = 0; row < there_.rows; ++row) working_.refresh_threshold(row);
    const int64_t compared = steps_->wave(first, end, meter);
    context_->copy_values(there_.entries, working_.list(0), entries);
    context_->synchronize();
    return compared;
  }

 private:
  const DeviceWorkingLists there_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  MatrixBuffer matrix_;
  WorkingLists working_;
  std::optional<PairRows> pairs_;
  std::optional<GraphListsCpu> lists_;
  std::unique_ptr<CellSteps> steps_;
};

}  // namespace

std::unique_ptr<CellSteps> make_cell_steps_cuda(GraphLists& lists, const CellsParams& params) {
  auto& there = static_cast<GraphListsCuda&>(lists);
  if (!is_product(there.pairs().kind)) return std::make_unique<CellStepsOnHost>(there, params);
  return std::make_unique<CellStepsCuda>(there, params);
}

}  // namespace kith
