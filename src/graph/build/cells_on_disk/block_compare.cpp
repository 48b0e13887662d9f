#include "graph/build/cells_on_disk/block_compare.hpp"

#include <kith/matrix_buffer.hpp>

#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/start_beside.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells/cell_worker.hpp"
#include "graph/lists/pairs/pair_rows.hpp"
#include "graph/lists/working_lists.hpp"
#include "rows/row_blocks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace kith {
namespace {

// Probes 1, 2, then up to 7, then all: within a block near cells come first, so that few pairs of far ones pass.
constexpr std::array<int64_t, 2> kClassEnds{3, 8};
constexpr int64_t kClasses = 3;

int64_t class_of(int64_t probe) { return probe < kClassEnds[0] ? 0 : probe < kClassEnds[1] ? 1 : 2; }

// Rows of a cell that are there, by their places in memory.
struct CellPart {
  uint32_t cell = 0;
  uint32_t first = 0;
  int64_t rows = 0;
};

// Some rows of a cell and some rows that probe it; no list of these: the rows themselves.
struct BlockTask {
  CellPart rows;
  const uint32_t* queries = nullptr;
  uint32_t first_query = 0;
  int64_t count = 0;
};

struct BlockMemory {
  BlockMemory(const BlockShape& shape, const Resources& resources)
      : rows(shape.dtype, shape.rows + shape.chunk, shape.cols, "a block of rows", resources),
        numbers(shape.rows + shape.chunk, "a block of rows", resources),
        pairs(rows.view(), key_kind(shape.metric), PairRows::Later(), resources),
        lists(shape.rows, shape.k, resources),
        raw(shape.chunk * record(shape).bytes(), "rows that pass by", resources),
        probing(shape.rows * (shape.probes - 1), "the rows that probe a cell", resources),
        probing_ends(kClasses * shape.cells + 1, "the rows that probe a cell", resources),
        passing(shape.chunk * (shape.probes - 1), "the rows that probe a cell", resources),
        passing_ends(shape.cells + 1, "the rows that probe a cell", resources),
        part_of_cell(shape.cells, "the cells of a block", resources),
        tasks_memory((kBytesPerCell + 8 * resources.threads()) * shape.cells + 4 * shape.rows, 0, resources) {
    pairs.prepare(shape.rows, 0, resources);
    for (int slot = 0; slot < resources.threads(); ++slot) {
      workers.push_back(std::make_unique<CellWorker>(pairs, numbers.data(), lists, resources));
    }
  }
  static StoredRecord record(const BlockShape& shape) {
    return {shape.cols * size_of(shape.dtype), shape.probes, shape.cells};
  }
  static constexpr int64_t kBytesPerCell = 64;  // of parts and tasks

  MatrixBuffer rows;
  HostArray<uint32_t> numbers;
  PairRows pairs;
  WorkingLists lists;
  HostArray<std::byte> raw;
  // Rows of the block that probe each cell, by class and cell; and rows of the chunk that probe a cell of the block.
  HostArray<uint32_t> probing;
  HostArray<int64_t> probing_ends;
  HostArray<uint32_t> passing;
  HostArray<int64_t> passing_ends;
  HostArray<int32_t> part_of_cell;  // of the block, or -1
  const Reservation tasks_memory;   // and the order in which lists are written
  std::vector<std::unique_ptr<CellWorker>> workers;
};

class BlockCompare {
 public:
  BlockCompare(const CellStore& store, int64_t first_piece, int64_t end_piece, const BlockShape& shape,
               ProgressMeter& meter, const Resources& resources)
      : store_(store),
        layout_(store.layout()),
        shape_(shape),
        first_(first_piece),
        end_(layout_.pieces_within(first_piece, end_piece, shape.rows)),
        meter_(meter),
        resources_(resources.with_progress({})),
        memory_(shape, resources_) {}

  void run(BlockLists& lists) {
    load();
    compare_inside();
    int64_t left = first_;
    int64_t right = end_;
    bool goes_right = true;
    read_ahead(next_chunk(left, right, goes_right));
    while (ahead_.first < ahead_.second) {
      const auto chunk = ahead_;
      take_chunk();
      (chunk.first == right ? right : left) = chunk.first == right ? chunk.second : chunk.first;
      goes_right = !goes_right;
      read_ahead(next_chunk(left, right, goes_right));
      compare_chunk(chunk.first, chunk.second);
      meter_.add(rows() * (layout_.place(chunk.second) - layout_.place(chunk.first)) / layout_.place(layout_.pieces()));
      meter_.poll();
    }
    write(lists);
  }

 private:
  using Pieces = std::pair<int64_t, int64_t>;

  int64_t rows() const { return layout_.place(end_) - layout_.place(first_); }
  // The place of the chunk's rows in memory.
  uint32_t chunk_place() const { return static_cast<uint32_t>(shape_.rows); }

  // The parts of cells in pieces whose first row is at `place` in memory.
  std::vector<CellPart> parts_of(int64_t first, int64_t end, uint32_t place) const {
    std::vector<CellPart> parts;
    for (int64_t piece = first; piece < end;) {
      const int64_t position = layout_.position(piece);
      const int64_t next = std::min(end, layout_.first_piece(position + 1));
      const int64_t rows = layout_.place(next) - layout_.place(piece);
      parts.push_back({layout_.cell(position), place, rows});
      place += static_cast<uint32_t>(rows);
      piece = next;
    }
    return parts;
  }

  // Pieces that were read, and the place in memory of their first row.
  struct ReadPieces {
    int64_t first = 0;
    int64_t end = 0;
    int64_t place = 0;
    const std::byte* bytes = nullptr;
    const std::byte* probes = nullptr;
  };

  // body(share, some of the pieces), for a share of every thread.
  template <typename Body>
  void for_shares(const ReadPieces& all, const Body& body) {
    const int64_t shares = resources_.threads();
    parallel_for(shares, meter_, resources_, [&](int64_t share, int) {
      const int64_t first = all.first + (all.end - all.first) * share / shares;
      const int64_t end = all.first + (all.end - all.first) * (share + 1) / shares;
      const int64_t before = layout_.place(first) - layout_.place(all.first);
      body(share, ReadPieces{first, end, all.place + before, all.bytes + before * store_.record().numbered_bytes(),
                             all.probes + before * store_.record().all_probes_bytes()});
    });
  }

  // Copies rows and numbers to their place.
  void unpack(const ReadPieces& read) {
    const int64_t row_bytes = store_.record().row_bytes;
    for_shares(read, [&](int64_t, ReadPieces some) {
      store_.for_pieces(some.first, some.end, some.bytes, some.probes, [&](int64_t rows, const std::byte* piece, auto) {
        std::memcpy(memory_.rows.mutable_view().row(some.place), piece, static_cast<size_t>(rows * row_bytes));
        std::memcpy(memory_.numbers.data() + some.place, store_.record().numbers(piece, rows),
                    static_cast<size_t>(rows * 4));
        some.place += rows;
      });
    });
  }

  // body(place in memory, probe, cell), for all probes but the own cell of the rows that were read.
  template <typename Body>
  void for_probes(const ReadPieces& read, const Body& body) const {
    const StoredRecord& record = store_.record();
    const int64_t end = read.place + layout_.place(read.end) - layout_.place(read.first);
    const std::byte* probes = read.probes;
    for (int64_t place = read.place; place < end; ++place, probes += record.all_probes_bytes()) {
      for (int64_t p = 1; p < record.probes; ++p) body(place, p, record.cell(probes, p));
    }
  }

  // The block's pieces, as many at a time as a chunk has.
  template <typename Body>
  void for_block(const Body& body) {
    int64_t place = 0;
    for (int64_t piece = first_; piece < end_;) {
      const int64_t next = layout_.pieces_within(piece, end_, shape_.chunk);
      const std::byte* const probes = store_.read(piece, next, memory_.raw.data());
      body(ReadPieces{piece, next, place, memory_.raw.data(), probes});
      place += layout_.place(next) - layout_.place(piece);
      piece = next;
      meter_.poll();
    }
  }

  // It is read twice: to count who probes which cell, and to list them.
  void load() {
    const HostArray<int64_t>& ends = memory_.probing_ends;
    std::fill(ends.begin(), ends.end(), int64_t{0});
    for_block([&](const ReadPieces& read) {
      unpack(read);
      for_probes(read, [&](int64_t, int64_t probe, uint32_t cell) { ++ends[list_of(cell, class_of(probe)) + 1]; });
    });
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<int64_t> next(ends.begin(), ends.end() - 1);
    for_block([&](const ReadPieces& read) {
      for_probes(read, [&](int64_t at, int64_t probe, uint32_t cell) {
        memory_.probing[next[static_cast<size_t>(list_of(cell, class_of(probe)))]++] = static_cast<uint32_t>(at);
      });
    });
    memory_.pairs.prepare(0, rows(), resources_);
    parts_ = parts_of(first_, end_, 0);
    std::fill(memory_.part_of_cell.begin(), memory_.part_of_cell.end(), -1);
    for (size_t i = 0; i < parts_.size(); ++i) memory_.part_of_cell[parts_[i].cell] = static_cast<int32_t>(i);
  }

  // Tasks of rows of a cell and queries.
  void add_tasks(const CellPart& part, const uint32_t* queries, uint32_t first_query, int64_t count,
                 std::vector<BlockTask>& tasks) {
    pairs_ += part.rows * count;
    for (int64_t query = 0; query < count; query += kCellTaskQueries) {
      const int64_t some = std::min(kCellTaskQueries, count - query);
      for (int64_t row = 0; row < part.rows; row += kCellTileRows) {
        tasks.push_back({{part.cell, static_cast<uint32_t>(part.first + row), std::min(kCellTileRows, part.rows - row)},
                         queries == nullptr ? nullptr : queries + query,
                         static_cast<uint32_t>(first_query + query),
                         some});
      }
    }
  }

  void add_listed(const CellPart& part, std::span<const uint32_t> queries, std::vector<BlockTask>& tasks) {
    add_tasks(part, queries.data(), 0, static_cast<int64_t>(queries.size()), tasks);
  }

  template <typename Body>
  void run_tasks_of(const std::vector<BlockTask>& tasks, const Body& body) {
    parallel_for(static_cast<int64_t>(tasks.size()), meter_, resources_, [&](int64_t number, int slot) {
      body(tasks[static_cast<size_t>(number)], *memory_.workers[static_cast<size_t>(slot)]);
    });
  }
  void run_listed(const std::vector<BlockTask>& tasks) {
    run_tasks_of(tasks, [&](const BlockTask& task, CellWorker& worker) {
      worker.run(task.rows.first, task.rows.rows, task.queries, task.count, meter_);
    });
  }

  static int64_t list_of(uint32_t cell, int64_t of_class) { return int64_t{cell} * kClasses + of_class; }
  // Rows of the block that probe a cell, of classes first .. end - 1.
  std::span<const uint32_t> probing(uint32_t cell, int64_t first, int64_t end) const {
    const HostArray<int64_t>& ends = memory_.probing_ends;
    const int64_t from = ends[list_of(cell, first)];
    return {memory_.probing.data() + from, static_cast<size_t>(ends[list_of(cell, end)] - from)};
  }

  void compare_inside() {
    std::vector<BlockTask> tasks;
    for (const CellPart& part : parts_) add_tasks(part, nullptr, part.first, part.rows, tasks);
    run_tasks_of(tasks, [&](const BlockTask& task, CellWorker& worker) {
      worker.run_own(task.rows.first, task.rows.rows, task.first_query, task.count, meter_);
    });
    for (int64_t of_class = 0; of_class < kClasses; ++of_class) {
      tasks.clear();
      for (const CellPart& part : parts_) {
        add_listed(part, probing(part.cell, of_class, of_class + 1), tasks);
      }
      run_listed(tasks);
    }
  }

  // Behind the block or before it, in turns while there is something on both sides.
  Pieces next_chunk(int64_t left, int64_t right, bool goes_right) const {
    if (right == layout_.pieces()) goes_right = false;
    if (left == 0) goes_right = true;
    if (goes_right) {
      return {right, right == layout_.pieces() ? right : layout_.pieces_within(right, layout_.pieces(), shape_.chunk)};
    }
    return {layout_.pieces_before(left, 0, shape_.chunk), left};
  }

  void read_ahead(const Pieces& pieces) {
    ahead_ = pieces;
    if (pieces.first == pieces.second) return;
    const auto read = [this, pieces] { return store_.read(pieces.first, pieces.second, memory_.raw.data()); };
    reading_ = start_beside(read);
  }

  // What was read becomes the chunk in memory; the memory that it was read to is free then.
  void take_chunk() {
    const std::byte* const probes = reading_.get();
    const ReadPieces read{ahead_.first, ahead_.second, chunk_place(), memory_.raw.data(), probes};
    unpack(read);
    memory_.pairs.prepare(chunk_place(), layout_.place(read.end) - layout_.place(read.first), resources_);
    // Every thread counts its share, learns where its rows of a cell begin, and puts them there.
    const size_t parts = parts_.size();
    std::vector<int64_t> next(static_cast<size_t>(resources_.threads()) * parts, 0);
    const auto for_ours = [&](const auto& body) {
      for_shares(read, [&](int64_t share, const ReadPieces& some) {
        int64_t* const mine = next.data() + static_cast<size_t>(share) * parts;
        for_probes(some, [&](int64_t place, int64_t, uint32_t cell) {
          if (memory_.part_of_cell[cell] >= 0) body(place, mine[memory_.part_of_cell[cell]]);
        });
      });
    };
    for_ours([](int64_t, int64_t& counted) { ++counted; });
    int64_t at = 0;
    for (size_t part = 0; part < parts; ++part) {
      memory_.passing_ends[static_cast<int64_t>(part)] = at;
      for (size_t i = part; i < next.size(); i += parts) at += std::exchange(next[i], at);
    }
    memory_.passing_ends[static_cast<int64_t>(parts)] = at;
    for_ours([&](int64_t place, int64_t& to) { memory_.passing[to++] = static_cast<uint32_t>(place); });
  }

  void compare_chunk(int64_t first, int64_t end) {
    std::vector<BlockTask> tasks;
    std::vector<std::vector<uint32_t>> halves;  // rows of cells that are cut
    for (const CellPart& part : parts_of(first, end, chunk_place())) {
      add_listed(part, probing(part.cell, 0, kClasses), tasks);
      const int32_t here = memory_.part_of_cell[part.cell];
      if (here < 0) continue;
      const CellPart& own = parts_[static_cast<size_t>(here)];
      halves.emplace_back(static_cast<size_t>(own.rows));
      std::iota(halves.back().begin(), halves.back().end(), own.first);
      add_listed(part, halves.back(), tasks);
    }
    for (size_t i = 0; i < parts_.size(); ++i) {
      const int64_t* const ends = memory_.passing_ends.data() + i;
      add_listed(parts_[i], {memory_.passing.data() + ends[0], static_cast<size_t>(ends[1] - ends[0])}, tasks);
    }
    run_listed(tasks);
  }

  void write(BlockLists& lists) const {
    constexpr int64_t kAtOnce = 256;
    std::vector<uint64_t> some(static_cast<size_t>(kAtOnce * shape_.k));
    std::vector<uint32_t> order(static_cast<size_t>(rows()));
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return memory_.numbers[a] < memory_.numbers[b]; });
    lists.append({layout_.place(first_), layout_.place(end_), pairs_}, memory_.numbers.data(),
                 {order.data(), kAtOnce, [&](const uint32_t* rows, int64_t count) {
                    for (int64_t i = 0; i < count; ++i) {
                      std::copy_n(memory_.lists.list(rows[i]), shape_.k, some.data() + i * shape_.k);
                    }
                    return static_cast<const uint64_t*>(some.data());
                  }},
                 resources_);
  }

  const CellStore& store_;
  const PieceLayout& layout_;
  const BlockShape shape_;
  const int64_t first_;  // piece
  const int64_t end_;
  ProgressMeter& meter_;
  const Resources resources_;
  BlockMemory memory_;
  std::vector<CellPart> parts_;  // of the block
  int64_t pairs_ = 0;
  Pieces ahead_;
  std::future<const std::byte*> reading_;  // the last member: it ends first
};

class BlockCompareCpu final : public BlockComparer {
 public:
  BlockCompareCpu(const CellStore& store, const BlockShape& shape, const Resources& resources)
      : store_(store), shape_(shape), resources_(resources) {}

  // The last block may take less memory.
  void compare(int64_t first_piece, int64_t end_piece, BlockLists& lists, ProgressMeter& meter) override {
    const int64_t left = store_.layout().place(end_piece) - store_.layout().place(first_piece);
    const int64_t rows = std::max(std::min(shape_.rows, left), fewest_block_rows(shape_));
    BlockCompare(store_, first_piece, end_piece, with_rows(shape_, rows, resources_), meter, resources_).run(lists);
  }

 private:
  const CellStore& store_;
  const BlockShape shape_;
  const Resources& resources_;
};

bool on_gpu(const Resources& resources) { return resources.device().kind == DeviceKind::cuda; }

}  // namespace

BlockShape with_rows(const BlockShape& shape, int64_t rows, const Resources& resources) {
  constexpr int64_t kChunkShare = 4;
  constexpr int64_t kMostChunkRows = 32768;
  if (on_gpu(resources)) return with_rows_cuda(shape, rows);
  BlockShape made = shape;
  made.rows = rows;
  made.chunk = std::max(fewest_block_rows(shape), std::min(rows / kChunkShare, kMostChunkRows));
  return made;
}

int64_t fewest_block_rows(const BlockShape& shape) { return most_piece_rows(BlockMemory::record(shape)); }

Footprint block_footprint(const BlockShape& shape, const Resources& resources) {
  if (on_gpu(resources)) return block_footprint_cuda(shape, resources);
  return footprint_of<BlockMemory>(resources, shape);
}

std::unique_ptr<BlockComparer> make_block_comparer(const CellStore& store, const BlockShape& shape,
                                                   const Resources& resources) {
  if (on_gpu(resources)) return make_block_comparer_cuda(store, shape, resources);
  return std::make_unique<BlockCompareCpu>(store, shape, resources);
}

}  // namespace kith
