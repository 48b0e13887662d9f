// All rows on disk in the order of their cells (cell_curve.hpp), ascending within each, with their numbers and probes:
// what blocks are compared from.
//
// It is written in two passes over the source. The first ranks the probes of every row, whose first is its own cell,
// and counts the rows of cells: then the place of every row is known. The second brings rows there, a few of each cell
// at a time: a piece, with a hash of its own. Pieces are what is read, so that a block may begin and end anywhere in a
// cell.
//
// Disk: the rows, 4 bytes and the probes (2 bytes each, 4 where there are more than 65,536 cells); while it is made the
// probes once more. Memory of the second pass: a piece of every cell.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include "core/reservation.hpp"
#include "io/work_folder.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kith {

// What a row takes in the store.
struct StoredRecord {
  int64_t row_bytes = 0;
  int64_t probes = 0;
  int64_t probe_bytes = 2;

  StoredRecord(int64_t row, int64_t probe_count, int64_t cells)
      : row_bytes(row), probes(probe_count), probe_bytes(cells <= 65536 ? 2 : 4) {}
  int64_t bytes() const { return row_bytes + 4 + probes * probe_bytes; }

  // A piece of so many rows: the rows, their numbers, their probes.
  const std::byte* numbers(const std::byte* piece, int64_t rows) const { return piece + rows * row_bytes; }
  const std::byte* probes_of(const std::byte* piece, int64_t rows, int64_t row) const {
    return numbers(piece, rows) + rows * 4 + row * probes * probe_bytes;
  }
  uint32_t cell(const std::byte* probes_of_row, int64_t probe) const {
    if (probe_bytes == 2) {
      uint16_t cell = 0;
      std::memcpy(&cell, probes_of_row + 2 * probe, sizeof(cell));
      return cell;
    }
    uint32_t cell = 0;
    std::memcpy(&cell, probes_of_row + 4 * probe, sizeof(cell));
    return cell;
  }
};

// Rows of a piece, at most.
int64_t most_piece_rows(const StoredRecord& record);

// Which pieces there are: those of each cell, in the order of cells.
class PieceLayout {
 public:
  PieceLayout() = default;
  // `order`: the cell at each place of the curve; sizes: rows of each cell.
  PieceLayout(std::span<const uint32_t> order, std::span<const int64_t> sizes, int64_t rows_per_piece);

  int64_t pieces() const { return first_piece_.back(); }
  int64_t rows_per_piece() const { return rows_per_piece_; }
  // The place on the curve of the cell that a piece is of.
  int64_t position(int64_t piece) const;
  uint32_t cell(int64_t position) const { return order_[static_cast<size_t>(position)]; }
  int64_t first_piece(int64_t position) const { return first_piece_[static_cast<size_t>(position)]; }
  // Places of rows: of a piece's first row, or of all rows before it.
  int64_t place(int64_t piece) const;
  // The piece that begins at a place, and -1 where none does.
  int64_t piece_at(int64_t place) const;
  int64_t rows(int64_t piece) const { return place(piece + 1) - place(piece); }
  // The end of pieces from one on, up to `end`, that have no more rows than these; one piece at least.
  int64_t pieces_within(int64_t first, int64_t end, int64_t rows) const;
  // The same backwards: the first of pieces before `end`.
  int64_t pieces_before(int64_t end, int64_t first, int64_t rows) const;

 private:
  int64_t rows_per_piece_ = 1;
  std::vector<uint32_t> order_;
  std::vector<int64_t> first_piece_{0};  // one more than cells
  std::vector<int64_t> first_place_{0};
};

// How cells are ranked for all rows of a source.
struct RankTask {
  const VectorFile& x;
  MatrixView centres;  // f32
  Metric metric = Metric::l2;
  double longest = 0;
  int64_t probes = 1;
};
// The first pass: probes of all rows in their order, and last the rows of each cell. Where memory is only counted there
// is no folder.
void write_probes(WorkFolder* folder, const std::string& name, const RankTask& task,
                  const std::vector<uint64_t>& hashes, const Resources& resources);
// The second one.
void write_store(WorkFolder* folder, const std::string& name, const std::string& probes, const RankTask& task,
                 std::span<const uint32_t> order, const std::vector<uint64_t>& hashes, const Resources& resources);

class CellStore {
 public:
  CellStore(StepFile step, std::span<const uint32_t> order, const StoredRecord& record, const Resources& resources);

  const PieceLayout& layout() const { return layout_; }
  const StoredRecord& record() const { return record_; }
  int64_t bytes(int64_t first, int64_t end) const { return step_.bytes(first + 1, end + 1); }
  void read(int64_t first, int64_t end, void* out) const { step_.read(first + 1, end + 1, out); }
  // body(rows of the piece, piece, its bytes), for each of the pieces that were read.
  template <typename Body>
  void for_pieces(int64_t first, int64_t end, const std::byte* read, const Body& body) const {
    for (int64_t piece = first; piece < end; ++piece) {
      const int64_t rows = layout_.rows(piece);
      body(rows, piece, read);
      read += rows * record_.bytes();
    }
  }

 private:
  StepFile step_;
  StoredRecord record_;
  PieceLayout layout_;
  std::unique_ptr<const Reservation> table_;
};

}  // namespace kith
