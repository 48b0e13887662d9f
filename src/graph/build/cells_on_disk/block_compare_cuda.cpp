// Blocks on a GPU (block_compare.hpp): a block stays there with its lists, and all other rows pass in chunks. A thread
// reads the next chunk into pinned memory and copies it to the device while the current one is compared.
//
// Rows of the block have local numbers from 0 on, followed by those of two alternating chunks. All are stored as
// operands of the matrix units, cell by cell: first the block, then the chunk. The rows of the block that probe each
// cell are listed once.
//
// Device memory: per row of the block its vector, operand, list and inbox, and 8 bytes per probe.
#include "graph/build/cells_on_disk/block_compare.hpp"

#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/start_beside.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/pinned_buffer.hpp"
#include "graph/build/cells/cell_compare_cuda.hpp"
#include "graph/build/cells/cell_ranks_cuda.hpp"
#include "graph/build/cells_on_disk/block_rows_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/select/sort_pairs_cuda.hpp"

#include <algorithm>
#include <future>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kListSlots = int64_t{1} << 31;  // below which slots are numbered
constexpr int64_t kCopiedBytes = int64_t{64} << 20;  // that are worth a copy of their own

// The number of operand places for the rows of a block or a chunk: each cell begins with a new tile.
int64_t places_for(const BlockShape& shape, int64_t rows) {
  constexpr int64_t kLostPlaces = 80;  // of a cell's last tile
  const double share = static_cast<double>(rows) / static_cast<double>(std::max(shape.all_rows, rows));
  const auto cells = static_cast<int64_t>(share * static_cast<double>(shape.cells)) + 1;
  return round_up(rows + kLostPlaces * cells + 2 * kQueryTile, kQueryTile);
}

struct BlockMemoryCuda {
  BlockMemoryCuda(const BlockShape& shape, const Resources& used)
      : context(std::make_shared<const DeviceContext>(used.device().index, used.options().stream)),
        resources(used.with_progress({}).with_stream(context->stream())),
        all_rows(shape.rows + 2 * shape.chunk),
        block_places(places_for(shape, shape.rows)),
        places(block_places + places_for(shape, shape.chunk)),
        type(operand_type(key_kind(shape.metric), shape.dtype, shape.dtype, shape.cols)),
        chunks(operand_chunks(shape.cols, operand_value_bytes(type))),
        record(shape.cols * size_of(shape.dtype), shape.probes, shape.cells),
        rows(all_rows * record.row_bytes, "a block of rows", context, resources),
        numbers(all_rows, "a block of rows", context, resources),
        norms(shape.metric == Metric::cosine ? all_rows : 0, "the rows' norms", context, resources),
        listed_norms(shape.metric == Metric::cosine ? block_places : 0, "the rows' norms", context, resources),
        lists(shape.rows * shape.k, "the lists of neighbours", context, resources),
        ranks(shape.rows * shape.probes, "the cells near each row", context, resources),
        chunk_ranks(shape.chunk * shape.probes, "the cells near each row", context, resources),
        raw_probes(shape.chunk * shape.probes * record.probe_bytes, "the cells near each row", context, resources),
        positions(shape.cells, "the cells", context, resources),
        runs(shape.cells, "the cells", context, resources),
        place_rows(places, "the rows of each cell", context, resources),
        row_places(all_rows, "the rows of each cell", context, resources),
        listed(block_places, "the rows of each cell", context, resources),
        space(shape.cols, chunks, places),
        operands(space.bytes, "the cells' operands", context, resources),
        block_slots(slots_for(shape, shape.rows), "the rows that probe each cell", context, resources),
        chunk_slots(slots_for(shape, shape.chunk), "the rows that probe each cell", context, resources),
        sorting(sort_pairs_bytes(shape.rows), "the order of rows", context, resources),
        fetched(fetched_at_once(shape.k) * shape.k, "the lists of neighbours", context, resources),
        pinned(std::max(shape.chunk * record.bytes() + 8, fetched_at_once(shape.k) * shape.k * 8), resources),
        host_numbers(shape.rows, "a block of rows", resources),
        host_order(shape.rows, "a block of rows", resources),
        cell_tables(128 * shape.cells + resources.threads() * ListChain::section_bytes(shape.k), 0, resources),
        compare(context, resources) {
    const int64_t most = compare_bytes(shape.rows);
    compare.take_space({shape.rows, shape.k, chunks, shape.cells, shape.largest_cell}, most);
    // With smaller cells it may take more than was counted for the largest; and rows are read.
    if (counts_only(resources)) {
      slack.emplace(kReadBytes * resources.threads(), std::max<int64_t>(0, most - compare.space().bytes), resources);
    }
  }

  static int64_t slots_for(const BlockShape& shape, int64_t rows) {
    return rows * shape.probes + std::min(shape.cells, rows * shape.probes) * (kQueryTile - 1);
  }
  // Inboxes of 16 for each row, and pieces that keep a GPU busy.
  static int64_t compare_bytes(int64_t rows) { return 140 * rows + std::min<int64_t>(int64_t{1} << 31, 100 * rows); }

  static constexpr int64_t kReadBytes = 1 << 20;  // of a thread, by PieceSource::read
  // Lists that go to the host at a time.
  static int64_t fetched_at_once(int64_t k) { return std::clamp<int64_t>((int64_t{1} << 20) / k, 256, 65536); }

  const std::shared_ptr<const DeviceContext> context;
  const Resources resources;
  const int64_t all_rows;
  const int64_t block_places;
  const int64_t places;
  const OperandType type;
  const int64_t chunks;
  const StoredRecord record;
  DeviceBuffer rows;
  DeviceArray<uint32_t> numbers;
  DeviceArray<double> norms;
  DeviceArray<double> listed_norms;
  DeviceArray<uint64_t> lists;
  DeviceArray<uint32_t> ranks;  // as places on the curve
  DeviceArray<uint32_t> chunk_ranks;
  DeviceBuffer raw_probes;
  DeviceArray<uint32_t> positions;
  DeviceArray<CellRun> runs;
  DeviceArray<uint32_t> place_rows;
  DeviceArray<uint32_t> row_places;
  DeviceArray<uint32_t> listed;
  CellOperandSpace space;
  DeviceBuffer operands;
  DeviceArray<uint32_t> block_slots;
  DeviceArray<uint32_t> chunk_slots;
  DeviceBuffer sorting;
  DeviceArray<uint64_t> fetched;
  PinnedBuffer pinned;
  HostArray<uint32_t> host_numbers;
  HostArray<uint32_t> host_order;
  const Reservation cell_tables;
  CellCompareCuda compare;
  std::optional<const Reservation> slack;
};

class BlockCompareCuda final : public BlockComparer {
 public:
  BlockCompareCuda(const PieceSource& source, const BlockShape& shape, const Resources& resources)
      : source_(source),
        layout_(source.layout()),
        shape_(shape),
        guard_(resources.device().index),
        memory_(shape, resources),
        context_(memory_.context),
        copies_(work_context(resources.device().index, resources)),
        reading_resources_(memory_.resources.with_cancel(CancelToken())) {
    set_operands();
    std::vector<uint32_t> positions(static_cast<size_t>(shape.cells));
    for (int64_t at = 0; at < shape.cells; ++at) positions[layout_.cell(at)] = static_cast<uint32_t>(at);
    context_->copy_values(memory_.positions.data(), positions.data(), shape.cells);
    context_->synchronize();  // and all memory is there for copies on another stream
  }

  void compare(int64_t first_piece, int64_t end_piece, BlockLists& lists, ProgressMeter& meter) override {
    first_ = first_piece;
    end_ = pieces_after(first_piece, end_piece, shape_.rows, memory_.block_places);
    pairs_ = 0;
    load(meter);
    compare_inside(meter);
    list_block_slots();
    int64_t left = first_;
    int64_t right = end_;
    bool goes_right = true;
    int64_t turn = 0;
    read_ahead(next_chunk(left, right, goes_right), chunk_row(turn));
    while (ahead_.first < ahead_.second) {
      const Pieces chunk = ahead_;
      take_chunk(turn);
      (chunk.first == right ? right : left) = chunk.first == right ? chunk.second : chunk.first;
      goes_right = !goes_right;
      read_ahead(next_chunk(left, right, goes_right), chunk_row(1 - turn));
      compare_chunk(chunk, turn, meter);
      turn = 1 - turn;
      meter.add(rows() * rows_of(chunk) / layout_.place(layout_.pieces()));
      meter.poll();
    }
    write(lists);
  }

 private:
  using Pieces = std::pair<int64_t, int64_t>;

  cudaStream_t stream() const { return context_->stream(); }
  int64_t rows_of(const Pieces& pieces) const { return layout_.place(pieces.second) - layout_.place(pieces.first); }
  int64_t rows() const { return rows_of({first_, end_}); }
  // The local number of a chunk's first row.
  int64_t chunk_row(int64_t turn) const { return shape_.rows + turn * shape_.chunk; }

  // body(place on the curve, rows) of each cell that pieces have rows of.
  template <typename Body>
  void for_cells(const Pieces& pieces, const Body& body) const {
    for (int64_t piece = pieces.first; piece < pieces.second;) {
      const int64_t position = layout_.position(piece);
      const int64_t next = std::min(pieces.second, layout_.first_piece(position + 1));
      body(position, rows_of({piece, next}));
      piece = next;
    }
  }
  int64_t places_of(const Pieces& pieces) const {
    int64_t places = 0;
    for_cells(pieces, [&](int64_t, int64_t rows) { places += round_up(rows, kOperandTile); });
    return places;
  }
  // The end of the most pieces from one on, up to a last, or before one, that fit.
  int64_t pieces_after(int64_t first, int64_t last, int64_t most_rows, int64_t most_places) const {
    for (int64_t some = most_rows;; some = some / 8 * 7) {
      const int64_t end = layout_.pieces_within(first, last, some);
      if (end == first + 1 || places_of({first, end}) <= most_places) return end;
    }
  }
  int64_t pieces_before(int64_t end, int64_t most_rows, int64_t most_places) const {
    for (int64_t some = most_rows;; some = some / 8 * 7) {
      const int64_t first = layout_.pieces_before(end, 0, some);
      if (first == end - 1 || places_of({first, end}) <= most_places) return first;
    }
  }
  // Behind the block or before it, in turns while there is something on both sides.
  Pieces next_chunk(int64_t left, int64_t right, bool goes_right) const {
    const int64_t places = memory_.places - memory_.block_places;
    if (right == layout_.pieces()) goes_right = false;
    if (left == 0) goes_right = true;
    if (goes_right) {
      const int64_t last = layout_.pieces();
      return {right, right == last ? right : pieces_after(right, last, shape_.chunk, places)};
    }
    return {pieces_before(left, shape_.chunk, places), left};
  }

  void set_operands() {
    std::byte* const memory = memory_.operands.data();
    operands_.kind = key_kind(shape_.metric);
    operands_.type = memory_.type;
    operands_.dtype = shape_.dtype;
    operands_.cols = shape_.cols;
    operands_.chunks = memory_.chunks;
    operands_.places = memory_.places;
    operands_.place_rows = memory_.place_rows.data();
    operands_.operands = memory_.space.operands.in(memory);
    operands_.terms = memory_.space.terms.in(memory);
    operands_.pair_terms = memory_.space.pair_terms.in(memory);
    operands_.own = memory_.space.own.in(memory);
    operands_.norms = memory_.space.norms.in(memory);
    operands_.limits = memory_.space.limits.in(memory);
    operands_.bounds = memory_.space.bounds.in(memory);
  }

  // All rows that are there.
  DeviceRowsView device_rows() const {
    return {memory_.rows.data(), shape_.dtype, shape_.cols, memory_.all_rows,
            memory_.norms.size() > 0 ? memory_.norms.data() : nullptr};
  }
  ComparedRows compared() const {
    return {{device_rows(), shape_.cols, operands_.kind, nullptr},
            operands_,
            {memory_.lists.data(), rows(), shape_.k},
            memory_.numbers.data(),
            by_products_};
  }

  // Reads pieces and brings them to the device, to rows from `first_row` on; their probes as they are stored.
  void bring(const Pieces& pieces, int64_t first_row) const {
    const DeviceGuard guard(context_->device());
    const StoredRecord& record = memory_.record;
    const int64_t count = rows_of(pieces);
    std::byte* const rows = memory_.pinned.data();
    std::byte* const numbers = rows + round_up(count * record.row_bytes, 4);
    std::byte* const probes = numbers + 4 * count;
    const int64_t probe_bytes = record.probes * record.probe_bytes;
    // Some pieces are copied while the next ones are read.
    for (int64_t first = pieces.first; first < pieces.second;) {
      const int64_t end = layout_.pieces_within(first, pieces.second, divide_up(kCopiedBytes, record.bytes()));
      const int64_t before = rows_of({pieces.first, first});
      const int64_t some = rows_of({first, end});
      const RowPlanes to{rows + before * record.row_bytes, reinterpret_cast<uint32_t*>(numbers) + before,
                         probes + before * probe_bytes};
      source_.read(first, end, to, reading_resources_);
      copies_->copy(memory_.rows.data() + (first_row + before) * record.row_bytes, to.rows, some * record.row_bytes);
      copies_->copy(memory_.numbers.data() + first_row + before, to.numbers, 4 * some);
      copies_->copy(memory_.raw_probes.data() + before * probe_bytes, to.probes, some * probe_bytes);
      first = end;
    }
    copies_->synchronize();
  }

  void read_ahead(const Pieces& pieces, int64_t first_row) {
    ahead_ = pieces;
    if (pieces.first == pieces.second) return;
    const auto read = [this, pieces, first_row] { bring(pieces, first_row); };
    reading_ = start_beside(read);
  }

  // Waits for what is being read, and puts its probes here; the next may be read then.
  void take_probes(uint32_t* ranks) {
    reading_.get();
    const int64_t count = rows_of(ahead_) * shape_.probes;
    launch_probe_positions(memory_.raw_probes.data(), memory_.record.probe_bytes, count, memory_.positions.data(),
                           ranks, stream());
    context_->synchronize();
  }

  void load(ProgressMeter& meter) {
    int64_t row = 0;
    const auto next = [&](int64_t piece) -> Pieces {
      return {piece, piece == end_ ? end_ : layout_.pieces_within(piece, end_, shape_.chunk)};
    };
    read_ahead(next(first_), 0);
    while (ahead_.first < ahead_.second) {
      const Pieces some = ahead_;
      take_probes(memory_.ranks.data() + row * shape_.probes);
      row += rows_of(some);
      read_ahead(next(some.second), row);
      meter.poll();
    }
    context_->fill(memory_.lists.data(), 0xFF, memory_.lists.size());
    block_layout_.emplace(place({first_, end_}, 0, 0));
    make_operands(0, memory_.block_places, 0, rows(), true);
    context_->copy_values(memory_.host_numbers.data(), memory_.numbers.data(), rows());
    context_->synchronize();
  }

  // The layout of the cells of pieces, whose rows start at first_row and places at first_place.
  CellLayout place(const Pieces& pieces, int64_t first_row, int64_t first_place) {
    std::vector<int64_t> sizes(static_cast<size_t>(shape_.cells), 0);
    std::vector<CellRun> runs;
    int64_t row = first_row;
    int64_t at = first_place;
    for_cells(pieces, [&](int64_t position, int64_t count) {
      sizes[static_cast<size_t>(position)] = count;
      runs.push_back({static_cast<uint32_t>(row), static_cast<uint32_t>(at), static_cast<uint32_t>(count)});
      row += count;
      at += round_up(count, kOperandTile);
    });
    const int64_t places = first_place == 0 ? memory_.block_places : memory_.places - memory_.block_places;
    context_->fill(memory_.place_rows.data() + first_place, 0xFF, places);
    context_->copy_values(memory_.runs.data(), runs.data(), static_cast<int64_t>(runs.size()));
    launch_place_runs(memory_.runs.data(), static_cast<int64_t>(runs.size()), memory_.place_rows.data(),
                      memory_.row_places.data(), stream());
    context_->synchronize();  // `runs` is on its way
    return CellLayout(std::move(sizes), first_place / kOperandTile);
  }

  // Rows at these places become operands. The block, which comes first, says how values are rounded.
  void make_operands(int64_t first_place, int64_t places, int64_t first_row, int64_t row_count, bool first) {
    if (memory_.norms.size() > 0) {
      DeviceRowsView fresh = slice_rows(device_rows(), first_row, row_count);
      fresh.inverse_norms = nullptr;
      launch_inspect_rows(fresh, shape_.cols, {nullptr, nullptr, memory_.norms.data() + first_row}, stream());
    }
    CellOperands part = operands_;
    part.places = places;
    part.place_rows += first_place;
    part.operands += first_place / kOperandTile * operands_.chunks * kTileChunkBytes;
    const auto moved = [&](void* values, int64_t each) {
      return static_cast<void*>(static_cast<CellOperandSpace::Value*>(values) + each * first_place);
    };
    part.terms = moved(operands_.terms, 1);
    part.pair_terms = moved(operands_.pair_terms, 2);
    part.own = moved(operands_.own, 1);
    part.norms += first_place;
    part.limits = moved(operands_.limits, 1);
    launch_operand_list(part.place_rows, places, memory_.listed.data(), stream());
    OperandTask task;
    task.rows = device_rows();
    task.rows.list = memory_.listed.data();
    task.rows.count = places;
    if (memory_.norms.size() > 0) {
      launch_gather_norms(memory_.norms.data(), memory_.listed.data(), places, memory_.listed_norms.data(), stream());
      task.rows.inverse_norms = memory_.listed_norms.data();
    }
    task.cols = shape_.cols;
    task.kind = operands_.kind;
    task.type = operands_.type;
    task.centre = memory_.space.centre.in(memory_.operands.data());
    task.base_bounds = operands_.bounds;
    task.operands = part.operands;
    if (first) launch_sample(task, stream());
    launch_base_operands(task, {.terms = part.terms, .first_bad = nullptr}, stream());
    launch_finish_operands(part, stream());
    BaseBounds bounds = {};
    context_->copy_values(&bounds, operands_.bounds, 1);
    context_->synchronize();
    const int64_t most = operands_.type == OperandType::bytes ? kWindowMostCols : kWindowMostHalfCols;
    by_products_ = bounds.unsure == 0 && operands_.cols <= most;
  }

  // How many of some rows probe each cell in these columns.
  std::vector<uint32_t> count_probing(const CellColumns& columns) {
    uint32_t* const counts = memory_.compare.at(memory_.compare.counters());
    context_->fill(counts, 0, shape_.cells);
    launch_count_cells(columns, shape_.cells, counts, stream());
    std::vector<uint32_t> probing(static_cast<size_t>(shape_.cells));
    context_->copy_values(probing.data(), counts, shape_.cells);
    context_->synchronize();
    return probing;
  }
  // The rows that probe each cell, whose places begin with these.
  void list_probing(const CellColumns& columns, const WaveTiles& wave, const uint32_t* places, uint32_t* slots) {
    uint32_t* const next = memory_.compare.at(memory_.compare.counters());
    context_->copy_values(next, wave.first_slots.data(), shape_.cells);
    context_->fill(slots, 0xFF, wave.slots());
    launch_put_slots(columns, shape_.cells, places, next, slots, stream());
    context_->synchronize();  // `first_slots` are on their way
  }
  // Some rows with the rows of the block in the cells that they probe.
  void compare_with_block(const CellColumns& columns, const uint32_t* places, uint32_t* slots, bool own,
                          ProgressMeter& meter) {
    const WaveTiles wave(*block_layout_, count_probing(columns));
    list_probing(columns, wave, places, slots);
    memory_.compare.compare(compared(), *block_layout_, wave, slots, own, meter);
    pairs_ += wave.pairs;
  }

  void compare_inside(ProgressMeter& meter) {
    for (int64_t probe = 0; probe < shape_.probes;) {
      const int64_t end = wave_end(probe, shape_.probes);
      compare_with_block({memory_.ranks.data(), shape_.probes, rows(), probe, end}, memory_.row_places.data(),
                         memory_.block_slots.data(), probe == 0, meter);
      probe = end;
    }
  }

  // The rows of the block that probe each cell, also their own, of which others may have rows.
  void list_block_slots() {
    const CellColumns columns{memory_.ranks.data(), shape_.probes, rows(), 0, shape_.probes};
    const CellLayout all(std::vector<int64_t>(static_cast<size_t>(shape_.cells), 1));
    block_probing_ = count_probing(columns);
    block_wave_ = WaveTiles(all, block_probing_);
    list_probing(columns, block_wave_, memory_.row_places.data(), memory_.block_slots.data());
  }
  int64_t first_tile(int64_t position) const {
    return position < shape_.cells ? block_wave_.first_slots[static_cast<size_t>(position)] / kQueryTile
                                   : block_wave_.count();
  }

  void take_chunk(int64_t turn) {
    const Pieces chunk = ahead_;
    take_probes(memory_.chunk_ranks.data());
    chunk_layout_.emplace(place(chunk, chunk_row(turn), memory_.block_places));
    make_operands(memory_.block_places, memory_.places - memory_.block_places, chunk_row(turn), rows_of(chunk), false);
  }

  void compare_chunk(const Pieces& chunk, int64_t turn, ProgressMeter& meter) {
    const int64_t first = layout_.position(chunk.first);
    const int64_t end = layout_.position(chunk.second - 1) + 1;
    WaveTiles wave;
    wave.cells.assign(block_wave_.cells.begin() + first_tile(first), block_wave_.cells.begin() + first_tile(end));
    for (int64_t position = first; position < end; ++position) {
      pairs_ += int64_t{block_probing_[static_cast<size_t>(position)]} *
                chunk_layout_->sizes[static_cast<size_t>(position)];
    }
    memory_.compare.compare(compared(), *chunk_layout_, wave,
                            memory_.block_slots.data() + first_tile(first) * kQueryTile, false, meter);
    if (shape_.probes > 1) {
      compare_with_block({memory_.chunk_ranks.data(), shape_.probes, rows_of(chunk), 1, shape_.probes},
                         memory_.row_places.data() + chunk_row(turn), memory_.chunk_slots.data(), false, meter);
    }
    context_->synchronize();  // the next but one comes to the place of this
  }

  // Lists in the order of rows. What the rows were compared with is not needed any more.
  void write(BlockLists& lists) {
    const DeviceWorkingLists there{memory_.lists.data(), rows(), shape_.k};
    SortPairsTask sort;
    sort.keys[0] = memory_.numbers.data();
    sort.keys[1] = memory_.ranks.data();
    sort.values[0] = memory_.row_places.data();
    sort.values[1] = memory_.block_slots.data();
    sort.count = rows();
    sort.memory = memory_.sorting.data();
    launch_count_up(sort.values[0], rows(), stream());
    const uint32_t* const order = sort.values[launch_sort_pairs(sort, stream())];
    uint32_t* const on_host = memory_.host_order.data();
    context_->copy_values(on_host, order, rows());
    context_->synchronize();
    lists.append({layout_.place(first_), layout_.place(end_), pairs_}, memory_.host_numbers.data(),
                 {on_host, BlockMemoryCuda::fetched_at_once(shape_.k), [&](const uint32_t* rows, int64_t count) {
                    launch_gather_lists(there, order + (rows - on_host), count, memory_.fetched.data(), stream());
                    auto* const to = reinterpret_cast<uint64_t*>(memory_.pinned.data());
                    context_->copy_values(to, memory_.fetched.data(), count * shape_.k);
                    context_->synchronize();
                    return static_cast<const uint64_t*>(to);
                  }},
                 memory_.resources);
  }

  const PieceSource& source_;
  const PieceLayout& layout_;
  const BlockShape shape_;
  const DeviceGuard guard_;
  BlockMemoryCuda memory_;
  const std::shared_ptr<const DeviceContext>& context_;
  const std::shared_ptr<const DeviceContext> copies_;
  const Resources reading_resources_;  // of a thread that reports and hears nothing
  CellOperands operands_;
  bool by_products_ = true;
  int64_t first_ = 0;  // piece
  int64_t end_ = 0;
  int64_t pairs_ = 0;
  std::optional<CellLayout> block_layout_;
  std::optional<CellLayout> chunk_layout_;
  WaveTiles block_wave_;  // rows of the block that probe each cell of all
  std::vector<uint32_t> block_probing_;
  Pieces ahead_;
  std::future<void> reading_;  // the last member: it ends first
};

}  // namespace

BlockShape with_rows_cuda(BlockShape shape, int64_t rows) {
  constexpr int64_t kChunkShare = 6;
  constexpr int64_t kMostChunkRows = int64_t{1} << 22;
  const int64_t fewest = fewest_block_rows(shape);
  const int64_t most = (kListSlots - shape.cells * kQueryTile) / shape.probes;
  shape.rows = std::max(fewest, std::min(rows, most));
  shape.chunk = std::max(fewest, std::min(rows / kChunkShare, kMostChunkRows));
  return shape;
}

Footprint block_footprint_cuda(const BlockShape& shape, const Resources& resources) {
  const DeviceGuard guard(resources.device().index);
  return footprint_of<BlockMemoryCuda>(resources, shape);
}

std::unique_ptr<BlockComparer> make_block_comparer_cuda(const PieceSource& source, const BlockShape& shape,
                                                        const Resources& resources) {
  return std::make_unique<BlockCompareCuda>(source, shape, resources);
}

}  // namespace kith
