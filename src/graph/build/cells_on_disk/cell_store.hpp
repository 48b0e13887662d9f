// All rows on disk in the order of their cells (cell_curve.hpp), ascending within each, with their numbers, and with
// their probes in a separate step: the input for comparing blocks.
//
// It is written in two passes over the source. The first finds the cell of every row, its probes too if all cells are
// ranked, and counts the rows of cells, which determines the place of every row. The second writes rows there, a few of
// each cell at a time: a piece, with a hash of its own. Pieces are the unit of reading, so that a block may begin and
// end anywhere in a cell. If there are so many cells that a row only ranks those near its own, probes are ranked
// afterwards, cell by cell.
//
// Disk per row: the row, 4 bytes and the probes (2 bytes each, 3 for more than 65,536 cells); during construction the
// probes again, or the number of its cell. Memory of the second pass: a piece of every cell; where that is too much, it goes over the
// source several times, for some cells each time.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/reservation.hpp"
#include "graph/build/cells_on_disk/piece_source.hpp"
#include "io/work_folder.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kith {

// The layout of a row in the store. The number of a cell is stored little-endian, in as few bytes as all cells need, from
// two on.
struct StoredRecord {
  int64_t row_bytes = 0;
  int64_t probes = 0;
  int64_t probe_bytes = 2;

  StoredRecord(int64_t row, int64_t probe_count, int64_t cells)
      : row_bytes(row), probes(probe_count), probe_bytes(cells <= 1 << 16 ? 2 : cells <= 1 << 24 ? 3 : 4) {}
  int64_t bytes() const { return numbered_bytes() + all_probes_bytes(); }
  int64_t numbered_bytes() const { return row_bytes + 4; }
  int64_t all_probes_bytes() const { return probes * probe_bytes; }

  // A piece has its rows, then their numbers.
  const std::byte* numbers(const std::byte* piece, int64_t rows) const { return piece + rows * row_bytes; }
  uint32_t cell(const std::byte* probes_of_row, int64_t probe) const {
    const auto* const from = reinterpret_cast<const uint8_t*>(probes_of_row + probe * probe_bytes);
    uint32_t cell = from[0] | uint32_t{from[1]} << 8;
    if (probe_bytes > 2) cell |= uint32_t{from[2]} << 16;
    if (probe_bytes > 3) cell |= uint32_t{from[3]} << 24;
    return cell;
  }
  void put_cell(std::byte* probes_of_row, int64_t probe, uint32_t cell) const {
    auto* const to = reinterpret_cast<uint8_t*>(probes_of_row + probe * probe_bytes);
    for (int64_t byte = 0; byte < probe_bytes; ++byte) to[byte] = static_cast<uint8_t>(cell >> 8 * byte);
  }
};

// The most rows of a piece.
int64_t most_piece_rows(const StoredRecord& record);

// The pieces of each cell, in the order of cells.
class PieceLayout {
 public:
  PieceLayout() = default;
  // `order`: the cell at each position of the curve; `sizes`: the number of rows of each cell.
  PieceLayout(std::span<const uint32_t> order, std::span<const int64_t> sizes, int64_t rows_per_piece);

  int64_t cells() const { return static_cast<int64_t>(order_.size()); }
  int64_t pieces() const { return first_piece_.back(); }
  int64_t rows_per_piece() const { return rows_per_piece_; }
  // The position on the curve of a piece's cell.
  int64_t position(int64_t piece) const;
  uint32_t cell(int64_t position) const { return order_[static_cast<size_t>(position)]; }
  int64_t first_piece(int64_t position) const { return first_piece_[static_cast<size_t>(position)]; }
  // The place of a piece's first row, which is the number of rows before it.
  int64_t place(int64_t piece) const;
  int64_t rows_of_cell(int64_t position) const {
    return first_place_[static_cast<size_t>(position) + 1] - first_place_[static_cast<size_t>(position)];
  }
  // The number of rows of the largest cell.
  int64_t largest_cell() const;
  // The piece that begins at a place; -1 if none does.
  int64_t piece_at(int64_t place) const;
  int64_t rows(int64_t piece) const { return place(piece + 1) - place(piece); }
  // The end of the longest run of pieces from `first`, up to `end`, with at most this many rows; at least one piece.
  int64_t pieces_within(int64_t first, int64_t end, int64_t rows) const;
  // The same backwards: the first piece of such a run before `end`.
  int64_t pieces_before(int64_t end, int64_t first, int64_t rows) const;

 private:
  int64_t rows_per_piece_ = 1;
  std::vector<uint32_t> order_;
  std::vector<int64_t> first_piece_{0};  // cells + 1
  std::vector<int64_t> first_place_{0};
};

// The parameters of ranking cells for all rows of a source.
struct SourceRanking {
  const VectorFile& x;
  MatrixView centres;  // f32
  Metric metric = Metric::l2;
  double longest = 0;
  int64_t probes = 1;

  int64_t cells() const { return centres.rows(); }
  // Otherwise only those near the row's own cell.
  bool ranks_all() const;
};
// The steps first .. end - 1.
struct StepRange {
  int64_t first = 0;
  int64_t end = 0;
};
// The steps of the first pass: each covers the rows of some hashes of the source, so that every step verifies the rows
// that it reads, and processes can share the steps.
class ProbeSteps {
 public:
  // `rows` of a step, 0: those of a hash. Steps that are not whole hashes, in tests, do not verify.
  ProbeSteps(const VectorFile& x, int64_t probes, int64_t rows);

  int64_t count() const;
  int64_t first(int64_t step) const { return step * each_; }
  int64_t rows(int64_t step) const { return std::min(each_, all_ - first(step)); }
  int64_t step_of(int64_t row) const { return row / each_; }
  std::string name(int64_t step) const {
    return beginning(probes_) + std::to_string(first(step)) + "-" + std::to_string(rows(step));
  }
  static std::string beginning(int64_t probes) { return "found-" + std::to_string(probes) + "-"; }
  // The hashes of the source for the rows of some steps.
  std::vector<uint64_t> hashes(const StepRange& range, const std::vector<uint64_t>& all) const;

 private:
  int64_t all_;
  int64_t probes_;
  int64_t hashed_;  // rows per hash
  int64_t each_;
};
// The later steps: a store is complete with both. Without a folder when memory is only counted.
struct StoreNames {
  std::string rows;
  std::string near;

  explicit StoreNames(int64_t probes);
};
// Writes consecutive steps of the first pass. Each has the cells of its rows in order, their probes if all cells are
// ranked, and finally the number of rows of each cell. The meter counts rows.
void write_found(WorkFolder* folder, const ProbeSteps& steps, const StepRange& range, const SourceRanking& task,
                 const std::vector<uint64_t>& hashes, ProgressMeter& meter, const Resources& resources);
// The second pass: writes the rows, preceded by their probes if these are known.
void write_rows(WorkFolder* folder, const StoreNames& names, const ProbeSteps& steps, const SourceRanking& task,
                std::span<const uint32_t> order, const std::vector<uint64_t>& hashes, const Resources& resources);
// The memory of the tables of a store that is written under these resources, and later of the store.
int64_t store_table_bytes(const SourceRanking& task, const Resources& resources);
// Ranks and writes probes that are not known.
void write_near(WorkFolder* folder, const StoreNames& names, const SourceRanking& task, std::span<const uint32_t> order,
                const Resources& resources);

class CellStore final : public PieceSource {
 public:
  // `near`: empty during construction.
  CellStore(StepFile rows, std::optional<StepFile> near, std::span<const uint32_t> order, const StoredRecord& record,
            const Resources& resources);

  const PieceLayout& layout() const override { return layout_; }
  const StoredRecord& record() const override { return record_; }
  void read(int64_t first, int64_t end, const RowPlanes& to, const Resources& resources) const override;

  // Reads pieces first .. end - 1, record().bytes() per row: all with numbers, then all probes. Returns the latter.
  const std::byte* read(int64_t first, int64_t end, std::byte* out) const;
  void read_rows(int64_t first, int64_t end, void* out) const { rows_.read(first + 1, end + 1, out); }
  // Reads only their vectors, packed, on all threads; `memory`: for at least a piece per thread.
  void read_vectors(int64_t first, int64_t end, const HostArray<std::byte>& memory, std::byte* rows,
                    const Resources& resources) const;
  void read_near(int64_t first, int64_t end, void* out) const { near_->read(first, end, out); }
  // Calls body(rows of the piece, its bytes, its probes) for each piece that was read.
  template <typename Body>
  void for_pieces(int64_t first, int64_t end, const std::byte* read, const std::byte* probes, const Body& body) const {
    for (int64_t piece = first; piece < end; ++piece) {
      const int64_t rows = layout_.rows(piece);
      body(rows, read, probes);
      read += rows * record_.numbered_bytes();
      probes += rows * record_.all_probes_bytes();
    }
  }
  // The number of pairs compared by the first `counted` probes of every row.
  int64_t count_pairs(int64_t counted, const Resources& resources) const;

 private:
  StepFile rows_;
  std::optional<StepFile> near_;
  StoredRecord record_;
  PieceLayout layout_;
  std::unique_ptr<const Reservation> table_;
};

}  // namespace kith
