#include "graph/build/cells_on_disk/cell_store.hpp"

#include <kith/host_buffer.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/cell_ranks_cpu.hpp"
#include "graph/build/cells/cell_space.hpp"
#include "graph/build/cells/centre_places.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "rows/rows_info.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kMostPassRows = 8192;
constexpr int64_t kFewestPassRows = 64;
// Of rows, or of their probes, which are one section of the first pass.
constexpr int64_t kProbeSectionBytes = 256 << 10;
// Of a piece.
constexpr int64_t kMostPieceBytes = 64 << 10;
constexpr int64_t kMostPieceRows = 512;

int64_t probe_section_rows(const StoredRecord& record) {
  return std::clamp<int64_t>(kProbeSectionBytes / std::max(record.row_bytes, record.probes * record.probe_bytes), 1,
                             4096);
}

StoredRecord record_of(const RankTask& task) {
  return {RowsInfo(task.x).row_bytes(), task.probes, task.centres.rows()};
}

int64_t most_pieces(int64_t rows, int64_t cells, int64_t rows_per_piece) { return rows / rows_per_piece + cells; }

// What the second pass takes for pieces of so many rows: one of each cell, and the table of all, whose sizes, offsets
// and hashes the writer keeps.
int64_t staging_bytes(const RankTask& task, int64_t rows_per_piece) {
  const int64_t cells = task.centres.rows();
  return cells * (rows_per_piece * record_of(task).bytes() + 12) +
         32 * most_pieces(task.x.rows(), cells, rows_per_piece);
}

// Few rows leave large tables, many large pieces: as many as fit well, else what takes least.
int64_t choose_piece_rows(const RankTask& task, const Resources& resources) {
  const StoredRecord record = record_of(task);
  const int64_t left = only_counts(resources) ? 0 : resources.host_memory()->available();
  int64_t least = 1;
  int64_t chosen = 0;
  for (int64_t rows = 1; rows <= most_piece_rows(record); rows *= 2) {
    if (staging_bytes(task, rows) < staging_bytes(task, least)) least = rows;
    if (staging_bytes(task, rows) <= left / 4) chosen = rows;
  }
  return chosen > 0 ? chosen : least;
}

std::span<const std::byte> some_bytes(const std::byte* bytes, int64_t count) {
  return {bytes, static_cast<size_t>(count)};
}

// Rows on their way to their pieces.
class PieceStaging {
 public:
  PieceStaging(StepWriter& writer, const PieceLayout& layout, const std::vector<uint32_t>& positions,
               const StoredRecord& record, const Resources& resources)
      : writer_(writer),
        layout_(layout),
        positions_(positions),
        record_(record),
        slot_bytes_(layout.rows_per_piece() * record.bytes()),
        slots_(static_cast<int64_t>(positions.size()) * slot_bytes_, "rows on their way to their cells", resources),
        filled_(static_cast<int64_t>(positions.size()), "rows on their way to their cells", resources),
        next_(static_cast<int64_t>(positions.size()), "rows on their way to their cells", resources) {
    if (only_counts(resources)) return;
    for (int64_t cell = 0; cell < next_.size(); ++cell) {
      filled_[cell] = 0;
      next_[cell] = layout_.first_piece(positions_[static_cast<size_t>(cell)]);
    }
  }

  void add(const std::byte* row, uint32_t number, const std::byte* probes) {
    const uint32_t cell = record_.cell(probes, 0);
    const int64_t rows = layout_.rows(next_[cell]);
    std::byte* const slot = slots_.data() + cell * slot_bytes_;
    const int64_t at = filled_[cell]++;
    std::memcpy(slot + at * record_.row_bytes, row, static_cast<size_t>(record_.row_bytes));
    std::memcpy(slot + rows * record_.row_bytes + at * 4, &number, 4);
    const int64_t probe_bytes = record_.probes * record_.probe_bytes;
    std::memcpy(slot + rows * (record_.row_bytes + 4) + at * probe_bytes, probes, static_cast<size_t>(probe_bytes));
    if (at + 1 < rows) return;
    writer_.put(next_[cell] + 1, some_bytes(slot, rows * record_.bytes()));
    filled_[cell] = 0;
    ++next_[cell];
  }

 private:
  StepWriter& writer_;
  const PieceLayout& layout_;
  const std::vector<uint32_t>& positions_;  // of cells, on the curve
  const StoredRecord record_;
  const int64_t slot_bytes_;
  HostArray<std::byte> slots_;
  HostArray<int32_t> filled_;  // rows of the piece that is being filled
  HostArray<int64_t> next_;    // that piece
};

}  // namespace

int64_t most_piece_rows(const StoredRecord& record) {
  return std::clamp<int64_t>(kMostPieceBytes / record.bytes(), 1, kMostPieceRows);
}

PieceLayout::PieceLayout(std::span<const uint32_t> order, std::span<const int64_t> sizes, int64_t rows_per_piece)
    : rows_per_piece_(rows_per_piece), order_(order.begin(), order.end()) {
  for (const uint32_t cell : order_) {
    first_piece_.push_back(first_piece_.back() + divide_up(sizes[cell], rows_per_piece));
    first_place_.push_back(first_place_.back() + sizes[cell]);
  }
}

int64_t PieceLayout::position(int64_t piece) const {
  return std::upper_bound(first_piece_.begin(), first_piece_.end(), piece) - first_piece_.begin() - 1;
}

int64_t PieceLayout::place(int64_t piece) const {
  if (piece >= pieces()) return first_place_.back();
  const auto at = static_cast<size_t>(position(piece));
  return first_place_[at] + (piece - first_piece_[at]) * rows_per_piece_;
}

int64_t PieceLayout::piece_at(int64_t place) const {
  if (place == first_place_.back()) return pieces();
  const auto at =
      static_cast<size_t>(std::upper_bound(first_place_.begin(), first_place_.end(), place) - first_place_.begin() - 1);
  const int64_t within = place - first_place_[at];
  return within % rows_per_piece_ == 0 ? first_piece_[at] + within / rows_per_piece_ : -1;
}

int64_t PieceLayout::pieces_within(int64_t first, int64_t end, int64_t rows) const {
  const int64_t most = place(first) + rows;
  int64_t fits = first + 1;
  int64_t beyond = end + 1;
  while (beyond - fits > 1) {
    const int64_t middle = fits + (beyond - fits) / 2;
    (place(middle) <= most ? fits : beyond) = middle;
  }
  return std::min(fits, end);
}

int64_t PieceLayout::pieces_before(int64_t end, int64_t first, int64_t rows) const {
  const int64_t least = place(end) - rows;
  int64_t fits = end - 1;
  int64_t beyond = first - 1;
  while (fits - beyond > 1) {
    const int64_t middle = beyond + (fits - beyond) / 2;
    (place(middle) >= least ? fits : beyond) = middle;
  }
  return std::max(fits, first);
}

void write_probes(WorkFolder* folder, const std::string& name, const RankTask& task,
                  const std::vector<uint64_t>& hashes, const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  const StoredRecord record = record_of(task);
  const int64_t cells = task.centres.rows();
  const int64_t all = task.x.rows();
  const bool two_sides = task.metric == Metric::inner_product;
  const int64_t wanted = std::min(cells, task.probes + (two_sides ? 1 : 0));
  const int64_t per_section = std::min(probe_section_rows(record), all);
  CellRanks near(task.centres, wanted, quiet);
  const HostArray<std::byte> section(per_section * task.probes * record.probe_bytes, "probes", resources);
  const HostArray<int64_t> sizes(cells, "the cells", resources);
  // Batches are whole sections.
  const int64_t seen_bytes = 4 * cell_cols(task.x.cols(), task.metric);
  const int64_t sections = rows_that_fit(
      1, std::max<int64_t>(1, kMostPassRows / per_section), resources,
      [&](int64_t some) { return pass_bytes(task.x, some * per_section) + some * per_section * (seen_bytes + 16); });
  const int64_t batch = sections * per_section;
  const CellSpace shape(MatrixView(nullptr, task.x.dtype(), {0, task.x.cols(), task.x.cols()}), task.metric, 0.0);
  MatrixBuffer memory = shape.memory_for(std::min(batch, all), quiet);
  HostArray<uint32_t> own(std::min(batch, all), "the rows' cells", resources);
  if (only_counts(resources)) {
    if (two_sides) (void)nearest_centres(memory.view(), task.centres, 1, quiet);
    (void)pass_over(task.x, "cells", batch, nullptr, resources, {});
    return;
  }
  std::fill(sizes.begin(), sizes.end(), int64_t{0});
  StepWriter writer(*folder, name, all * task.probes * record.probe_bytes);
  const RankWindow window{0, task.probes};
  const auto write = [&](int64_t, const MatrixView& rows) {
    const CellSpace space(rows, task.metric, task.longest);
    if (two_sides) {
      const Neighbors found =
          nearest_centres(space.range(0, rows.rows(), CellSide::found, memory, quiet), task.centres, 1, quiet);
      for (int64_t i = 0; i < rows.rows(); ++i) own[i] = static_cast<uint32_t>(found.ids(i)[0]);
    }
    const MatrixView looking = space.range(0, rows.rows(), CellSide::looking, memory, quiet);
    for (int64_t first = 0; first < rows.rows(); first += per_section) {
      const int64_t some = std::min(per_section, rows.rows() - first);
      ProgressMeter meter("cells", some, quiet);
      near.rank(looking.slice(first, some), meter, [&](int64_t i, const uint32_t* found) {
        if (!two_sides) own[first + i] = found[0];
        std::byte* const to = section.data() + i * task.probes * record.probe_bytes;
        if (record.probe_bytes == 2) {
          put_probes(found, wanted, own[first + i], nullptr, window, reinterpret_cast<uint16_t*>(to));
        } else {
          put_probes(found, wanted, own[first + i], nullptr, window, reinterpret_cast<uint32_t*>(to));
        }
      });
      for (int64_t i = 0; i < some; ++i) ++sizes[own[first + i]];
      writer.add(some_bytes(section.data(), some * task.probes * record.probe_bytes));
    }
  };
  pass_over(task.x, "cells", batch, &hashes, resources, write);
  writer.add(std::as_bytes(std::span(sizes.data(), static_cast<size_t>(cells))));
  writer.commit();
}

void write_store(WorkFolder* folder, const std::string& name, const std::string& probes, const RankTask& task,
                 std::span<const uint32_t> order, const std::vector<uint64_t>& hashes, const Resources& resources) {
  const StoredRecord record = record_of(task);
  const int64_t cells = task.centres.rows();
  const int64_t all = task.x.rows();
  const int64_t per_section = std::min(probe_section_rows(record), all);
  const int64_t per_piece = choose_piece_rows(task, resources);
  const Reservation tables(32 * most_pieces(all, cells, per_piece), 0, resources);
  const HostArray<std::byte> ranked(per_section * task.probes * record.probe_bytes, "probes", resources);
  std::vector<uint32_t> positions(static_cast<size_t>(cells));
  const int64_t batch = rows_that_fit(kFewestPassRows, kMostPassRows, resources, [&](int64_t rows) {
    return pass_bytes(task.x, rows) + cells * (per_piece * record.bytes() + 12);
  });
  if (only_counts(resources)) {
    const Reservation staging(cells * (per_piece * record.bytes() + 12), 0, resources);
    (void)pass_over(task.x, "order", batch, nullptr, resources, {});
    return;
  }
  const std::optional<StepFile> read = folder->find(probes);
  if (!read) throw DamagedStep(folder->path() + "/" + probes, probes, 0, "the step is not there");
  // What is read back of the first pass.
  std::vector<int64_t> head{per_piece};
  head.resize(static_cast<size_t>(cells) + 1);
  read->read(read->sections() - 1, head.data() + 1);
  for (int64_t at = 0; at < cells; ++at) positions[order[static_cast<size_t>(at)]] = static_cast<uint32_t>(at);
  const PieceLayout layout(order, std::span(head).subspan(1), per_piece);
  folder->require_space(all * record.bytes());
  StepWriter writer(*folder, name, all * record.bytes());
  {
    std::vector<int64_t> sizes{static_cast<int64_t>(head.size()) * 8};
    for (int64_t piece = 0; piece < layout.pieces(); ++piece) sizes.push_back(layout.rows(piece) * record.bytes());
    writer.lay_out(sizes);
  }
  writer.put(0, std::as_bytes(std::span(head)));
  PieceStaging staging(writer, layout, positions, record, resources);
  const auto put = [&](int64_t first, const MatrixView& rows) {
    for (int64_t i = 0; i < rows.rows(); ++i) {
      const int64_t row = first + i;
      if (row % per_section == 0) read->read(row / per_section, ranked.data());
      staging.add(static_cast<const std::byte*>(rows.row(i)), static_cast<uint32_t>(row),
                  ranked.data() + row % per_section * task.probes * record.probe_bytes);
    }
  };
  pass_over(task.x, "order", batch, &hashes, resources, put);
  writer.commit();
}

CellStore::CellStore(StepFile step, std::span<const uint32_t> order, const StoredRecord& record,
                     const Resources& resources)
    : step_(std::move(step)), record_(record) {
  table_ = std::make_unique<const Reservation>(StepFile::table_bytes(step_.sections()), 0, resources);
  std::vector<int64_t> head(order.size() + 1);
  if (step_.bytes(0) != static_cast<int64_t>(head.size()) * 8) {
    throw DamagedStep(step_.name(), step_.name(), 0, "the step is of other cells");
  }
  step_.read(0, head.data());
  layout_ = PieceLayout(order, std::span(head).subspan(1), std::max<int64_t>(1, head[0]));
}

}  // namespace kith
