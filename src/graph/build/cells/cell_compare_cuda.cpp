#include "graph/build/cells/cell_compare_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/device_info.hpp"

#include <algorithm>
#include <utility>

namespace kith {

// One call of compare().
class CellCompareCuda::Wave {
 public:
  Wave(CellCompareCuda& room, const ComparedRows& rows, const CellLayout& layout, const WaveTiles& wave,
       const uint32_t* slots, bool own)
      : room_(room),
        context_(room.context_),
        engine_(room.engine_),
        space_(room.space_),
        pairs_per_slot_(room.pairs_per_slot_),
        rows_(rows),
        operands_(rows.operands),
        lists_(rows.lists),
        layout_(layout),
        wave_(wave),
        slots_(slots),
        own_(own) {}

  void run_all(ProgressMeter& meter) {
    limit_by_lists(!own_);
    zero(space_.spilled_count);
    std::vector<WavePiece> again;
    std::vector<WavePiece> under_way;
    for (int64_t tile = 0; tile < wave_.count();) {
      under_way.push_back({tile, piece_end(tile)});
      tile = under_way.back().end_tile;
      run(under_way.back(), static_cast<int64_t>(under_way.size()) - 1);
      if (static_cast<int64_t>(under_way.size()) < kCellPiecesAhead) continue;
      settle(under_way, again);
      meter.poll();
    }
    settle(under_way, again);
    meter.poll();
    while (!again.empty()) {  // with the limits that lists have now
      limit_by_lists(true);
      // A single tile of slots is done alone: its offers surely fit then.
      const bool alone = again.back().tiles() == 1;
      do {
        under_way.push_back(again.back());
        again.pop_back();
        run(under_way.back(), static_cast<int64_t>(under_way.size()) - 1);
      } while (!alone && static_cast<int64_t>(under_way.size()) < kCellPiecesAhead && !again.empty() &&
               again.back().tiles() > 1);
      settle(under_way, again);
      meter.poll();
    }
  }

 private:
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return room_.at(slot);
  }
  template <typename T>
  void zero(const Slot<T>& slot) const {
    context_->fill(at(slot), 0, slot.count);
  }
  cudaStream_t stream() const { return context_->stream(); }
  int64_t largest_cell() const { return *std::max_element(layout_.sizes.begin(), layout_.sizes.end()); }

  void limit_by_lists(bool known) const {
    launch_cell_limits(operands_, lists_, {.lists = known, .both_sides = !own_}, stream());
  }

  // Enqueues a piece; `number` is that of its counters.
  void run(const WavePiece& piece, int64_t number) {
    const uint32_t* const slots = slots_ + piece.first_tile * kQueryTile;
    const int64_t count = piece.tiles() * kQueryTile;
    uint32_t* const found = at(space_.pair_counts) + number;
    context_->fill(found, 0, 1);
    if (rows_.by_products) {
      multiply(piece, slots, count, found);
    } else {
      list_all(piece, slots, found);
    }
    PairKeysTask keys;
    keys.rows = rows_.keys;
    keys.numbers = rows_.numbers;
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

  void multiply(const WavePiece& piece, const uint32_t* slots, int64_t count, uint32_t* found) {
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
      launch_product<ProductParts>(engine_, product, upload(items_of(layout_, wave_, some, parts.tiles)),
                                   {values, parts.rows_per_part, parts.stride()}, stream());
      launch_limits_of_parts(operands_, slots, count, values, parts.stride(), lists_.length + 1, stream());
    }
    void* const limits = at(space_.slot_limits);
    launch_slot_limits(operands_, slots, count, limits, stream());
    product.terms = operands_.pair_terms;
    std::vector<ProductItem> items = items_of(layout_, wave_, piece, kItemTiles);
    if (items.empty()) return;  // of cells without rows here
    launch_product<ProductPairs>(engine_, product, upload(std::move(items)),
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

  void list_all(const WavePiece& piece, const uint32_t* slots, uint32_t* found) const {
    for (const ProductItem& item : items_of(layout_, wave_, piece, kItemTiles)) {
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

  // Query tiles to enqueue at once, from the hit rate of the previous piece (it only falls). Without products every
  // pair is a hit, so the pair buffer decides.
  int64_t tiles_at_once() const {
    if (!rows_.by_products) {
      const int64_t largest = round_up(largest_cell(), kOperandTile);
      return std::clamp<int64_t>(space_.pair_capacity / (kQueryTile * largest), 1, space_.tiles);
    }
    const double likely = static_cast<double>(space_.pair_capacity) / (1.5 * (pairs_per_slot_ + 0.1) * kQueryTile);
    return std::clamp<int64_t>(static_cast<int64_t>(likely), 1, space_.tiles);
  }
  int64_t piece_end(int64_t first) const {
    if (!own_ || !rows_.by_products) return std::min(first + tiles_at_once(), wave_.count());
    double likely = 0;
    int64_t end = first;
    while (end < wave_.count() && end - first < space_.own_tiles &&
           likely <= static_cast<double>(space_.pair_capacity)) {
      const int64_t size = layout_.sizes[wave_.cells[static_cast<size_t>(end)]];
      likely += 1.25 * kQueryTile * likely_own_pairs(size, lists_.length);
      ++end;
    }
    return likely <= static_cast<double>(space_.pair_capacity) ? end : std::max(end - 1, first + 1);
  }

  // Waits for the pieces that are under way, brings in what was spilled, and cuts those that lost something.
  void settle(std::vector<WavePiece>& under_way, std::vector<WavePiece>& again) {
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
      for (const WavePiece& part : cut_piece(layout_, wave_, piece, parts)) again.push_back(part);
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

  const CellCompareCuda& room_;
  const std::shared_ptr<const DeviceContext>& context_;
  const ProductEngine engine_;
  const CellSpacePlan& space_;
  double& pairs_per_slot_;
  const ComparedRows& rows_;
  const CellOperands& operands_;
  const DeviceWorkingLists& lists_;
  const CellLayout& layout_;
  const WaveTiles& wave_;
  const uint32_t* const slots_;
  const bool own_;
  std::vector<std::vector<ProductItem>> host_items_;
  int64_t uploaded_ = 0;  // items
};

CellCompareCuda::CellCompareCuda(std::shared_ptr<const DeviceContext> context, const Resources& resources)
    : context_(std::move(context)),
      resources_(resources),
      engine_(product_engine(cuda_device_when_idle(context_->device()).compute_capability)) {}

void CellCompareCuda::take_space(const CellSpaceProblem& problem, int64_t available) {
  free_space();
  space_ = plan_cell_space(problem, available);
  memory_ = DeviceBuffer(space_.bytes, "comparing rows with cells", context_, resources_);
  context_->fill(at(space_.inbox_counts), 0, space_.inbox_counts.count);
}

void CellCompareCuda::compare(const ComparedRows& rows, const CellLayout& layout, const WaveTiles& wave,
                              const uint32_t* slots, bool own, ProgressMeter& meter) {
  if (wave.count() == 0) return;
  Wave(*this, rows, layout, wave, slots, own).run_all(meter);
}

}  // namespace kith
