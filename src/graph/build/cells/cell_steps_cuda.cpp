// Waves on a GPU.
//
// Rows lie cell by cell as operands of the matrix units. The rows that probe a cell in a wave are sorted by cell and
// gathered, tile after tile, and multiplied with the rows of their cell; pairs that may matter to either row get
// canonical keys and are offered to both (cell_offers_cuda.hpp). The own cell comes first, with limits from the least
// values of its parts; then lists are full, and their last neighbours are the limits.
//
// Nothing depends on order, so that pieces of a wave are enqueued without waiting. Where a piece found more pairs than
// there is room for, it is done again in as many pieces as that takes, with the limits that lists have by then. Where
// products say nothing, all pairs get keys.
#include "graph/build/cells/cells.hpp"

#include <kith/matrix_buffer.hpp>

#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_info.hpp"
#include "graph/build/cells/cell_items.hpp"
#include "graph/build/cells/cell_offers_cuda.hpp"
#include "graph/build/cells/cell_operands_cuda.hpp"
#include "graph/build/cells/cell_partition_cuda.hpp"
#include "graph/build/cells/cell_ranks_cuda.hpp"
#include "graph/build/cells/cell_workspace_cuda.hpp"
#include "graph/lists/graph_lists_cuda.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace kith {
namespace {

class CellStepsCuda final : public CellSteps {
 public:
  CellStepsCuda(const GraphListsCuda& lists, const CellsWish& wish)
      : rows_(lists.collection()),
        lists_(lists.lists()),
        context_(lists.context()),
        resources_(lists.resources()),
        metric_(wish.metric),
        wish_(wish),
        control_(lists.control()),
        engine_(product_engine(cuda_device_when_idle(context_->device()).compute_capability)) {
    operands_.kind = key_kind(metric_);
    operands_.dtype = rows_.rows().dtype;
    operands_.type = operand_type(operands_.kind, operands_.dtype, operands_.dtype, rows_.cols());
    operands_.cols = rows_.cols();
    operands_.chunks = operand_chunks(operands_.cols, operand_value_bytes(operands_.type));
    look_at_control_rows();
    if (!wish.recall) return;
    ties_.emplace(control_, rows_.view(), metric_, resources_.with_log({}));
    forecast_.mean_near = ties_->mean_near();
    forecast_.crowded = ties_->is_crowded();
  }

  void learn() override {
    if (cells_) return;
    cells_.emplace(rows_, wish_, control_, ties_ ? &*ties_ : nullptr, context_, resources_);
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

  int64_t probes() const override { return ranked_probes(wish_); }
  const ProbeForecast& forecast() const override { return forecast_; }
  int64_t pairs(int64_t probes) const override { return cells_->pairs(probes); }
  double blur() const override { return blur_; }

  void count_waves(int64_t widest) override {
    rank(last_rank_window(probes(), lists_.rows));
    make_slots(std::min(widest, probes_at_once()) * lists_.rows + layout_->cells() * kQueryTile);
  }

  int64_t wave(int64_t first, int64_t end, ProgressMeter& meter) override {
    own_ = first == 0;
    int64_t pairs = 0;
    for (int64_t at = first; at < end;) {
      if (!cells_->ranked().holds(at)) rank(cells_->window_from(at, end));
      const int64_t next = std::min({at + probes_at_once(), cells_->ranked().end(), end});
      pairs += part(at, next, meter);
      at = next;
    }
    return pairs;
  }

 private:
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(memory_.data());
  }
  // For pieces of waves, as large as there is memory to spare for: half of it, and a quarter for slots.
  void make_space() {
    const int64_t largest = context_->only_counts() ? lists_.rows : largest_cell();
    const CellSpaceProblem problem{lists_.rows, lists_.length, operands_.chunks, layout_->cells(), largest};
    const int64_t spare = std::min(SpareDeviceMemory::of(resources_), idle_bytes());
    space_ = plan_cell_space(problem, spare / 2);
    space_.slots = std::min(space_.slots, lists_.rows + spare / 4 / array_bytes<uint32_t>(1));
    memory_ = DeviceBuffer(space_.bytes, "comparing rows with cells", context_, resources_);
    zero(space_.inbox_counts);
  }
  void rank(const RankWindow& window) {
    memory_ = {};  // which holds nothing between waves
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
    return std::max<int64_t>(space_.slots / (lists_.rows + layout_->cells() * kQueryTile), 1);
  }
  int64_t largest_cell() const { return *std::max_element(layout_->sizes.begin(), layout_->sizes.end()); }

  // What the device has free, for Kith.
  int64_t idle_bytes() const {
    return cuda_device(context_->device()).memory_free;
  }
  cudaStream_t stream() const { return context_->stream(); }
  template <typename T>
  void zero(const Slot<T>& slot) const {
    context_->fill(at(slot), 0, slot.count);
  }

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
    operands_.facts = space.facts.in(memory);

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
  BaseFacts round_rows(const DeviceArray<uint32_t>& list, const CellOperandSpace& space, std::byte* memory,
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
    task.base_facts = space.facts.in(memory);
    task.operands = space.operands.in(memory);
    context_->fill(task.base_facts, 0, 1);
    launch_sample(task, stream());
    launch_base_operands(task, {.terms = space.terms.in(memory), .first_bad = nullptr}, stream());
    finish();
    BaseFacts facts = {};
    context_->copy_values(&facts, task.base_facts, 1);
    context_->synchronize();
    return facts;
  }

  void weigh(const BaseFacts& facts) {
    const int64_t most = operands_.type == OperandType::bytes ? kWindowMostCols : kWindowMostHalfCols;
    by_products_ = facts.unsure == 0 && operands_.cols <= most;
    blur_ = by_products_ ? blur_of(facts.rows, facts.sample_largest) : 1;
  }

  // How little products tell of rows of such norms, from 0 to 1, for half of the control rows: whether their error is
  // large beside the distance of the last neighbour. Then many pairs of a cell are within it, since rows near each other
  // are often about as far apart.
  double blur_of(const OperandFacts& rows, float sample_largest) const {
    constexpr double kAllBlurred = 0.15;  // of the squared distance
    const bool exact_products = operands_.type == OperandType::bytes || operands_.kind == KeyKind::inner_product;
    if (exact_products || context_->only_counts()) return 0;
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

  // Some probes of every row.
  int64_t part(int64_t first, int64_t end, ProgressMeter& meter) {
    const WaveTiles wave = collect(first, end);
    launch_cell_limits(operands_, lists_, {.lists = !own_, .both_sides = !own_}, stream());
    zero(space_.spilled_count);
    std::vector<WavePiece> again;
    std::vector<WavePiece> under_way;
    for (int64_t tile = 0; tile < wave.count();) {
      under_way.push_back({tile, piece_end(wave, tile)});
      tile = under_way.back().end_tile;
      run(wave, under_way.back(), static_cast<int64_t>(under_way.size()) - 1);
      if (static_cast<int64_t>(under_way.size()) < kCellPiecesAhead) continue;
      settle(wave, under_way, again);
      meter.poll();
    }
    settle(wave, under_way, again);
    meter.add(lists_.rows * (end - first));
    meter.poll();
    while (!again.empty()) {  // with the limits that lists have now
      launch_cell_limits(operands_, lists_, {.lists = true, .both_sides = !own_}, stream());
      // A single tile of slots is done alone: its offers surely fit then.
      const bool alone = again.back().tiles() == 1;
      do {
        under_way.push_back(again.back());
        again.pop_back();
        run(wave, under_way.back(), static_cast<int64_t>(under_way.size()) - 1);
      } while (!alone && static_cast<int64_t>(under_way.size()) < kCellPiecesAhead && !again.empty() &&
               again.back().tiles() > 1);
      settle(wave, under_way, again);
      meter.poll();
    }
    return wave.pairs;
  }

  // Sorts the rows by the cells that they probe.
  WaveTiles collect(int64_t first, int64_t end) {
    const CellColumns columns = cells_->columns(first, end);
    const auto cells = static_cast<int64_t>(cells_->sizes().size());
    uint32_t* const next = at(space_.next);
    zero(space_.next);
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

  // Enqueues a piece; `number` is that of its counters.
  void run(const WaveTiles& wave, const WavePiece& piece, int64_t number) {
    const uint32_t* const slots = slots_.data() + piece.first_tile * kQueryTile;
    const int64_t count = piece.tiles() * kQueryTile;
    uint32_t* const found = at(space_.pair_counts) + number;
    context_->fill(found, 0, 1);
    if (by_products_) {
      multiply(wave, piece, slots, count, found);
    } else {
      list_all(wave, piece, slots, found);
    }
    PairKeysTask keys;
    keys.rows = {rows_.rows(), operands_.cols, operands_.kind};
    keys.pairs = at(space_.pairs);
    keys.count = found;
    keys.capacity = static_cast<uint32_t>(space_.pair_capacity);
    keys.slots = slots;
    keys.place_rows = operands_.place_rows;
    keys.to_rows = !own_;
    keys.lists = lists_;
    keys.inboxes = inboxes(0);
    launch_pair_keys(keys, stream());
    launch_merge_inboxes(lists_, keys.inboxes, stream());
    context_->copy_values(at(space_.spill_counts) + number, at(space_.spilled_count), 1);
  }

  void multiply(const WaveTiles& wave, const WavePiece& piece, const uint32_t* slots, int64_t count, uint32_t* found) {
    std::byte* const queries = at(space_.queries);
    launch_gather_queries(operands_, slots, count, queries, stream());
    ProductOperands product;
    product.type = operands_.type;
    product.queries = queries;
    product.base = operands_.operands;
    product.query_count = count;
    product.row_count = operands_.places;
    product.chunks = operands_.chunks;
    product.last_steps = last_chunk_steps(operands_.cols, operand_value_bytes(operands_.type));
    const CellParts parts = cell_parts(lists_.length);
    if (own_ && parts.tiles > 0) {  // the rows' lists may be empty
      float* const values = at(space_.parts);
      context_->fill(values, 0x7F, count * parts.stride());
      const WavePiece some{piece.first_tile, piece.end_tile, 0, parts.tiles};
      product.terms = operands_.terms;
      launch_product<ProductParts>(engine_, product, upload(items_of(*layout_, wave, some, parts.tiles)),
                                   {values, parts.rows_per_part, parts.stride()}, stream());
      launch_limits_of_parts(operands_, slots, count, values, parts.stride(), lists_.length + 1, stream());
    }
    void* const limits = at(space_.slot_limits);
    launch_slot_limits(operands_, slots, count, limits, stream());
    product.terms = operands_.pair_terms;
    launch_product<ProductPairs>(engine_, product, upload(items_of(*layout_, wave, piece, kItemTiles)),
                                 {limits, at(space_.pairs), found, static_cast<uint32_t>(space_.pair_capacity)},
                                 stream());
  }

  // Items to the device; their memory on the host stays until the next wait.
  ProductSchedule upload(std::vector<ProductItem> items) {
    const auto count = static_cast<int64_t>(items.size());
    ProductItem* const there = at(space_.items) + uploaded_;
    context_->copy_values(there, items.data(), count);
    uploaded_ += count;
    host_items_.push_back(std::move(items));
    return schedule_items(there, static_cast<int>(count));
  }

  void list_all(const WaveTiles& wave, const WavePiece& piece, const uint32_t* slots, uint32_t* found) const {
    for (const ProductItem& item : items_of(*layout_, wave, piece, kItemTiles)) {
      AllPairsTask task;
      task.slots = slots + int64_t{item.query_tile} * kQueryTile;
      task.first_slot = int64_t{item.query_tile} * kQueryTile;
      task.slot_count = kQueryTile;
      task.place_rows = operands_.place_rows;
      task.first_place = int64_t{item.first_tile} * kOperandTile;
      task.place_count = int64_t{item.end_tile - item.first_tile} * kOperandTile;
      task.pairs = at(space_.pairs);
      task.count = found;
      task.capacity = static_cast<uint32_t>(space_.pair_capacity);
      launch_all_pairs(task, stream());
    }
  }

  CellInboxes inboxes(int turn) const {
    return {at(space_.inboxes),       at(space_.inbox_counts),  space_.inbox_slots,
            at(space_.spilled[turn]), at(space_.spilled_count), static_cast<uint32_t>(space_.spill_capacity)};
  }

  // As many as are likely to leave room, by what the last piece found: the next ones find fewer. All pairs of so many
  // are as many as there are.
  int64_t tiles_at_once() const {
    if (!by_products_) {
      const int64_t largest = round_up(largest_cell(), kOperandTile);
      return std::clamp<int64_t>(space_.pair_capacity / (kQueryTile * largest), 1, space_.tiles);
    }
    const double likely = static_cast<double>(space_.pair_capacity) / (1.5 * (pairs_per_slot_ + 0.1) * kQueryTile);
    return std::clamp<int64_t>(static_cast<int64_t>(likely), 1, space_.tiles);
  }
  int64_t piece_end(const WaveTiles& wave, int64_t first) const {
    if (!own_ || !by_products_) return std::min(first + tiles_at_once(), wave.count());
    double likely = 0;
    int64_t end = first;
    while (end < wave.count() && end - first < space_.own_tiles &&
           likely <= static_cast<double>(space_.pair_capacity)) {
      const int64_t size = layout_->sizes[wave.cells[static_cast<size_t>(end)]];
      likely += 1.25 * kQueryTile * likely_own_pairs(size, lists_.length);
      ++end;
    }
    return likely <= static_cast<double>(space_.pair_capacity) ? end : std::max(end - 1, first + 1);
  }

  // Waits for the pieces that are under way, brings in what was spilled, and cuts those that lost something.
  void settle(const WaveTiles& wave, std::vector<WavePiece>& under_way, std::vector<WavePiece>& again) {
    if (under_way.empty()) return;
    uint32_t found[kCellPiecesAhead];
    uint32_t spilled[kCellPiecesAhead];
    const auto count = static_cast<int64_t>(under_way.size());
    context_->copy_values(found, at(space_.pair_counts), count);
    context_->copy_values(spilled, at(space_.spill_counts), count);
    context_->synchronize();
    for (int64_t i = 0; i < count; ++i) {
      const WavePiece& piece = under_way[static_cast<size_t>(i)];
      if (!own_) pairs_per_slot_ = static_cast<double>(found[i]) / static_cast<double>(piece.tiles() * kQueryTile);
      if (found[i] <= space_.pair_capacity && spilled[i] <= space_.spill_capacity) continue;
      const int64_t parts = divide_up(5 * int64_t{found[i]}, 4 * space_.pair_capacity);
      for (const WavePiece& part : cut_piece(*layout_, wave, piece, parts)) again.push_back(part);
    }
    under_way.clear();
    host_items_.clear();
    uploaded_ = 0;
    int turn = 0;
    for (int64_t waiting = std::min<int64_t>(spilled[count - 1], space_.spill_capacity); waiting > 0;) {
      zero(space_.spilled_count);
      const CellInboxes boxes = inboxes(1 - turn);
      launch_offer_again(lists_, at(space_.spilled[turn]), waiting, boxes, stream());
      launch_merge_inboxes(lists_, boxes, stream());
      uint32_t left = 0;
      context_->copy_values(&left, boxes.spilled_count, 1);
      context_->synchronize();
      waiting = left;  // no more than there were
      turn = 1 - turn;
    }
    zero(space_.spilled_count);
  }

  const GraphRowsCuda& rows_;
  const DeviceWorkingLists lists_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const Metric metric_;
  const CellsWish wish_;
  const ControlRows& control_;
  std::optional<ControlTies> ties_;
  ProbeForecast forecast_;
  std::optional<CellPartitionCuda> cells_;
  const ProductEngine engine_;
  std::optional<CellLayout> layout_;
  CellSpacePlan space_;
  DeviceArray<uint32_t> place_rows_;  // the row at each place
  DeviceArray<uint32_t> row_places_;  // the place of each row
  DeviceBuffer operand_memory_;
  DeviceBuffer memory_;
  DeviceArray<uint32_t> slots_;
  CellOperands operands_;
  bool by_products_ = true;
  double blur_ = 0;
  bool own_ = true;  // the wave is that of the own cells
  double pairs_per_slot_ = 10;
  std::vector<std::vector<ProductItem>> host_items_;
  int64_t uploaded_ = 0;  // items
};

// Waves by a metric that is no product: the CPU compares, and the lists go to and fro. The GPU's waves are products.
// What cells begin NN-Descent with is little by other metrics, and must be the same bytes. Memory on the host: the
// rows, the lists, and what the CPU's steps take.
class CellStepsOnHost final : public CellSteps {
 public:
  CellStepsOnHost(const GraphListsCuda& lists, const CellsWish& wish)
      : there_(lists.lists()),
        context_(lists.context()),
        resources_(lists.resources().with_device(Device::cpu())),
        matrix_(lists.view().dtype(), there_.rows, lists.view().cols(), "the rows", resources_),
        working_(there_.rows, there_.length, resources_) {
    const MatrixView& x = lists.view();
    const auto row_bytes = static_cast<size_t>(x.cols() * size_of(x.dtype()));
    const auto pitch = static_cast<size_t>(x.row_stride() * size_of(x.dtype()));
    if (!context_->only_counts()) {
      KITH_CUDA_CHECK(cudaMemcpy2DAsync(matrix_.mutable_view().row(0), row_bytes, x.data(), pitch, row_bytes,
                                        static_cast<size_t>(x.rows()), cudaMemcpyDeviceToHost, context_->stream()));
    }
    context_->synchronize();
    pairs_.emplace(matrix_.view(), key_kind(wish.metric), resources_);
    lists_.emplace(*pairs_, wish.metric, &lists.control(), working_, resources_);
    CellsWish here = wish;
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

std::unique_ptr<CellSteps> make_cell_steps_cuda(GraphLists& lists, const CellsWish& wish) {
  auto& there = static_cast<GraphListsCuda&>(lists);
  if (!is_product(there.pairs().kind)) return std::make_unique<CellStepsOnHost>(there, wish);
  return std::make_unique<CellStepsCuda>(there, wish);
}

}  // namespace kith
