#include "graph/build/cells_on_disk/cell_store.hpp"

#include <kith/host_buffer.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/start_beside.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells_on_disk/near_ranks.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/build/cells_on_disk/source_ranks.hpp"
#include "io/row_slice.hpp"
#include "rows/row_blocks.hpp"
#include "rows/rows_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kMostNearRows = 131072;  // whose near cells are ranked at a time
constexpr int64_t kMostNearRowsOnGpu = int64_t{1} << 20;
constexpr int64_t kFewestPassRows = 64;
constexpr int64_t kUsualPassRows = 4096;  // several passes leave room for this many
// Section size of rows, or of their probes, in the first pass.
constexpr int64_t kProbeSectionBytes = 256 << 10;
// Bytes that a thread reads at a time.
constexpr int64_t kMostRunBytes = 1 << 20;
constexpr int64_t kNearRunBytes = 256 << 10;
constexpr int64_t kNearWriteBytes = 64 << 10;  // bytes of probes that a thread writes at a time
// Limits of one piece.
constexpr int64_t kMostPieceBytes = 64 << 10;
constexpr int64_t kMostPieceRows = 512;
constexpr int64_t kFewestPieceRows = 16;  // also where a row with its probes is large: tables of pieces grow otherwise

int64_t probe_section_rows(const StoredRecord& record) {
  return std::clamp<int64_t>(kProbeSectionBytes / std::max(record.row_bytes, record.all_probes_bytes()), 1, 4096);
}

StoredRecord record_of(const SourceRanking& task) { return {RowsInfo(task.x).row_bytes(), task.probes, task.cells()}; }
// What the first pass finds of a row: its probes, or its cell.
int64_t found_count(const SourceRanking& task) { return task.ranks_all() ? task.probes : 1; }
// What the second one brings to pieces.
StoredRecord staged_record(const SourceRanking& task) {
  return {RowsInfo(task.x).row_bytes(), task.ranks_all() ? task.probes : 0, task.cells()};
}

// Sizes, offsets and hashes of a piece in two steps while they are written; half of that in a store.
constexpr int64_t kPieceTables = 64;
constexpr int64_t kTableShare = 8;   // of what is left, for the tables of pieces that are chosen by it
constexpr int64_t kStagedCell = 16;  // of a cell, beside its piece
int64_t most_pieces(int64_t rows, int64_t cells, int64_t rows_per_piece) { return rows / rows_per_piece + cells; }

// How the second pass brings rows to pieces of their cells.
struct StagingPlan {
  int64_t piece_rows = 1;
  int64_t cells = 1;  // that are filled at a time: each time is a pass of its own over the source
};

constexpr int64_t kMostPasses = 64;

int64_t piece_table_bytes(const SourceRanking& task, int64_t piece_rows) {
  return kPieceTables * most_pieces(task.x.rows(), task.cells(), piece_rows);
}
// One piece per cell that is filled.
int64_t slot_bytes(const SourceRanking& task, const StagingPlan& plan) {
  return plan.cells * (plan.piece_rows * staged_record(task).bytes() + kStagedCell);
}
// With the table of all pieces: sizes, offsets and hashes.
int64_t staging_bytes(const SourceRanking& task, const StagingPlan& plan) {
  return slot_bytes(task, plan) + piece_table_bytes(task, plan.piece_rows);
}

// Small pieces need large tables, large ones much memory.
StagingPlan plan_staging(const SourceRanking& task, const Resources& resources) {
  const int64_t left = counts_only(resources) ? 0 : resources.host_memory()->available();
  const int64_t fewest_cells = divide_up(task.cells(), kMostPasses);
  std::optional<StagingPlan> large;  // the largest pieces that fit well
  std::optional<StagingPlan> small;  // what takes least in one pass
  StagingPlan least{1, fewest_cells};
  for (int64_t rows = 1; rows <= most_piece_rows(record_of(task)); rows *= 2) {
    const StagingPlan one_pass{rows, task.cells()};
    const StagingPlan most_passes{rows, fewest_cells};
    const int64_t bytes = staging_bytes(task, one_pass);
    if (piece_table_bytes(task, rows) <= left / kTableShare) {
      if (bytes <= left / 4) large = one_pass;
      if (bytes <= left / 2 && (!small || bytes < staging_bytes(task, *small))) small = one_pass;
    }
    if (staging_bytes(task, most_passes) < staging_bytes(task, least)) least = most_passes;
  }
  return large ? *large : small.value_or(least);
}

std::span<const std::byte> some_bytes(const std::byte* bytes, int64_t count) {
  return {bytes, static_cast<size_t>(count)};
}

// Rows of some cells on their way to their pieces, and beside them their probes where there are any. Each thread has a
// share of these cells, and takes their rows from every batch.
class PieceStaging {
 public:
  PieceStaging(StepWriter& rows, StepWriter* near, const PieceLayout& layout, const StoredRecord& record,
               int64_t most_cells, const Resources& resources)
      : rows_(rows),
        near_(near),
        layout_(layout),
        record_(record),
        slot_bytes_(layout.rows_per_piece() * record.bytes()),
        slots_(most_cells * slot_bytes_, "rows on their way to their cells", resources),
        filled_(most_cells, "rows on their way to their cells", resources),
        room_(most_cells, "rows on their way to their cells", resources),
        next_(most_cells, "rows on their way to their cells", resources) {}

  // The cells of a pass; `positions`: of all cells on the curve.
  void begin(int64_t first_cell, int64_t count, const std::vector<uint32_t>& positions) {
    first_cell_ = first_cell;
    count_ = count;
    for (int64_t at = 0; at < count; ++at) {
      filled_[at] = 0;
      next_[at] = layout_.first_piece(positions[static_cast<size_t>(first_cell + at)]);
      room_[at] = room_of(next_[at]);
    }
  }

  // Rows from this number on, with what the first pass has found of them.
  void add(const MatrixView& rows, int64_t first, const std::byte* found, const StoredRecord& found_record,
           const Resources& resources) {
    const int64_t shares = std::min<int64_t>(resources.threads(), count_);
    ProgressMeter meter("order", rows.rows(), resources);
    parallel_for(shares, meter, resources, [&](int64_t share, int) {
      const auto begin = static_cast<uint32_t>(first_cell_ + count_ * share / shares);
      const auto count = static_cast<uint32_t>(first_cell_ + count_ * (share + 1) / shares) - begin;
      const std::byte* probes = found;
      for (int64_t i = 0; i < rows.rows(); ++i, probes += found_record.all_probes_bytes()) {
        const uint32_t cell = found_record.cell(probes, 0);
        if (cell - begin >= count) continue;
        add_row(static_cast<const std::byte*>(rows.row(i)), static_cast<uint32_t>(first + i), cell - first_cell_,
                probes);
      }
    });
  }

 private:
  void add_row(const std::byte* row, uint32_t number, int64_t cell, const std::byte* probes) {
    const int64_t rows = room_[cell];
    const int64_t probe_bytes = record_.all_probes_bytes();
    std::byte* const slot = slots_.data() + cell * slot_bytes_;
    std::byte* const near = slot + rows * record_.numbered_bytes();
    const int64_t at = filled_[cell]++;
    std::memcpy(slot + at * record_.row_bytes, row, static_cast<size_t>(record_.row_bytes));
    std::memcpy(slot + rows * record_.row_bytes + at * 4, &number, 4);
    std::memcpy(near + at * probe_bytes, probes, static_cast<size_t>(probe_bytes));
    if (at + 1 < rows) return;
    rows_.put(next_[cell] + 1, some_bytes(slot, rows * record_.numbered_bytes()));
    if (near_ != nullptr) near_->put(next_[cell], some_bytes(near, rows * probe_bytes));
    filled_[cell] = 0;
    room_[cell] = room_of(++next_[cell]);
  }

  // Not defined for the piece after the last.
  int32_t room_of(int64_t piece) const {
    return piece < layout_.pieces() ? static_cast<int32_t>(layout_.rows(piece)) : 0;
  }

  StepWriter& rows_;
  StepWriter* const near_;
  const PieceLayout& layout_;
  const StoredRecord record_;
  const int64_t slot_bytes_;
  int64_t first_cell_ = 0;
  int64_t count_ = 0;  // of cells; what follows is of each of them
  HostArray<std::byte> slots_;
  HostArray<int32_t> filled_;  // rows of the piece that is being filled
  HostArray<int32_t> room_;    // and how many it will have
  HostArray<int64_t> next_;    // that piece
};

}  // namespace

int64_t most_piece_rows(const StoredRecord& record) {
  return std::clamp<int64_t>(kMostPieceBytes / record.bytes(), kFewestPieceRows, kMostPieceRows);
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

int64_t PieceLayout::largest_cell() const {
  int64_t largest = 1;
  for (size_t i = 1; i < first_place_.size(); ++i) largest = std::max(largest, first_place_[i] - first_place_[i - 1]);
  return largest;
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

int64_t store_table_bytes(const SourceRanking& task, const Resources& resources) {
  const int64_t pieces = most_pieces(task.x.rows(), task.cells(), plan_staging(task, resources).piece_rows);
  return 2 * StepFile::table_bytes(pieces) + 8 * task.cells();
}

bool SourceRanking::ranks_all() const { return cells() <= kMostCellsRanked; }

StoreNames::StoreNames(int64_t probes)
    : rows(fmt::format("rows-{}", probes)), near(fmt::format("near-{}", probes)) {}

void write_found(WorkFolder* folder, const ProbeSteps& steps, const StepRange& range, const SourceRanking& task,
                 const std::vector<uint64_t>& hashes, ProgressMeter& meter, const Resources& resources) {
  const int64_t each = std::min(steps.rows(0), task.x.rows());
  const int64_t count = found_count(task);
  const StoredRecord record(RowsInfo(task.x).row_bytes(), count, task.cells());
  const int64_t per_section = std::min(probe_section_rows(record), each);
  const HostArray<std::byte> section(per_section * record.all_probes_bytes(), "probes", resources);
  const HostArray<int64_t> sizes(task.cells(), "the cells", resources);
  SourceRanks ranks({task.x.cols(), task.x.dtype(), task.centres, task.metric, task.longest, count}, resources);
  // Batches are whole sections, those of a step alike.
  const int64_t in_step = divide_up(each, per_section);
  const int64_t most = std::clamp<int64_t>(ranks.most_rows() / per_section, 1, in_step);
  const int64_t sections = rows_that_fit(1, most, resources, [&](int64_t some) {
    return Footprint{pass_bytes(task.x, some * per_section)}.beside(ranks.footprint(some * per_section));
  });
  const int64_t batch = std::min(each, divide_up(in_step, divide_up(in_step, sections)) * per_section);
  ranks.take_memory(batch);
  if (counts_only(resources)) {
    (void)pass_over(task.x, "cells", {batch}, nullptr, resources, {});
    return;
  }
  const int64_t first_row = steps.first(range.first);
  std::optional<StepWriter> writer;
  const auto begin_step = [&](int64_t step) {
    std::fill(sizes.begin(), sizes.end(), int64_t{0});
    writer.emplace(*folder, steps.name(step), steps.rows(step) * record.all_probes_bytes());
  };
  const auto end_step = [&] {
    writer->add(std::as_bytes(std::span(sizes.data(), static_cast<size_t>(task.cells()))));
    writer->commit();
    writer.reset();
  };
  // Rows that were ranked, from this one on.
  const auto write_some = [&](const uint32_t* probes, int64_t rows) {
    for (int64_t done = 0; done < rows; done += per_section) {
      const int64_t some = std::min(per_section, rows - done);
      for (int64_t i = 0; i < some; ++i, probes += count) {
        std::byte* const to = section.data() + i * record.all_probes_bytes();
        for (int64_t p = 0; p < count; ++p) record.put_cell(to, p, probes[p]);
        ++sizes[probes[0]];
      }
      writer->add(some_bytes(section.data(), some * record.all_probes_bytes()));
    }
  };
  // What was ranked last is written once the pass has verified its rows, beside the ranking of the next.
  struct Ranked {
    int64_t first = 0;
    int64_t rows = 0;
    const uint32_t* probes = nullptr;
  };
  std::optional<Ranked> last;
  const auto write_last = [&] {
    if (!last) return;
    const int64_t step = steps.step_of(last->first);
    if (last->first == steps.first(step)) begin_step(step);
    write_some(last->probes, last->rows);
    if (last->first + last->rows == steps.first(step) + steps.rows(step)) end_step();
  };
  const auto rank_and_write = [&](int64_t at, const MatrixView& rows) {
    for (int64_t first = 0; first < rows.rows(); first += ranks.at_once(per_section)) {
      const MatrixView looked = rows.slice(first, std::min(ranks.at_once(per_section), rows.rows() - first));
      // Rows of one batch are verified together, so that only the first of its parts may end a step.
      std::future<void> written = start_beside(write_last);
      const uint32_t* const probes = ranks.rank(looked);
      written.get();
      last = Ranked{first_row + at + first, looked.rows(), probes};
    }
    meter.add(rows.rows());
    meter.poll();
  };
  const VectorFile rows =
      slice_of(task.x, first_row, steps.first(range.end - 1) + steps.rows(range.end - 1) - first_row);
  const std::vector<uint64_t> known = steps.hashes(range, hashes);
  pass_over(rows, "cells", {batch, each}, known.empty() ? nullptr : &known, resources.with_progress({}),
            rank_and_write);
  write_last();
}

ProbeSteps::ProbeSteps(const VectorFile& x, int64_t probes, int64_t rows)
    : all_(x.rows()), probes_(probes), hashed_(rows_per_hash(x)), each_(rows > 0 ? rows : hashed_) {}

int64_t ProbeSteps::count() const { return divide_up(all_, each_); }

std::vector<uint64_t> ProbeSteps::hashes(const StepRange& range, const std::vector<uint64_t>& all) const {
  if (each_ % hashed_ != 0) return {};
  const int64_t end = std::min(static_cast<int64_t>(all.size()), first(range.end) / hashed_);
  return {all.begin() + first(range.first) / hashed_, all.begin() + end};
}

namespace {

// The steps of the first pass, read from front to back.
class ProbeReader {
 public:
  ProbeReader(WorkFolder& folder, const ProbeSteps& steps, const StoredRecord& found, HostArray<std::byte>& memory)
      : folder_(folder), steps_(steps), found_(found), memory_(memory) {}

  // The rows of each cell.
  void add_sizes(std::span<int64_t> sizes) {
    std::vector<int64_t> some(sizes.size());
    for (int64_t step = 0; step < steps_.count(); ++step) {
      const StepFile file = folder_.open(steps_.name(step));
      if (file.sections() < 1 ||
          file.bytes(file.sections() - 1) != static_cast<int64_t>(some.size() * sizeof(int64_t))) {
        file.refuse("the step is of other cells");
      }
      file.read(file.sections() - 1, some.data());
      for (size_t cell = 0; cell < some.size(); ++cell) sizes[cell] += some[cell];
    }
  }

  // What was found of the next rows.
  void read(int64_t first, int64_t count, std::byte* out) {
    for (int64_t done = 0; done < count;) {
      const int64_t step = steps_.step_of(first + done);
      const int64_t within = first + done - steps_.first(step);
      if (within == 0) {
        file_.emplace(folder_.open(steps_.name(step)));
        per_section_ = std::min(probe_section_rows(found_), steps_.rows(step));
      }
      const int64_t in_section = within % per_section_;
      if (in_section == 0) file_->read(within / per_section_, memory_.data());
      const int64_t some = std::min({per_section_ - in_section, steps_.rows(step) - within, count - done});
      std::memcpy(out + done * found_.all_probes_bytes(), memory_.data() + in_section * found_.all_probes_bytes(),
                  static_cast<size_t>(some * found_.all_probes_bytes()));
      done += some;
    }
  }

 private:
  WorkFolder& folder_;
  const ProbeSteps& steps_;
  const StoredRecord& found_;
  HostArray<std::byte>& memory_;
  std::optional<StepFile> file_;
  int64_t per_section_ = 1;
};

}  // namespace

void write_rows(WorkFolder* folder, const StoreNames& names, const ProbeSteps& steps, const SourceRanking& task,
                std::span<const uint32_t> order, const std::vector<uint64_t>& hashes, const Resources& resources) {
  const StoredRecord found(RowsInfo(task.x).row_bytes(), found_count(task), task.cells());
  const StoredRecord record = staged_record(task);
  const int64_t cells = task.cells();
  const int64_t all = task.x.rows();
  const int64_t per_section = std::min(probe_section_rows(found), all);
  const StagingPlan least = plan_staging(task, resources);
  const int64_t per_piece = least.piece_rows;
  const Reservation tables(piece_table_bytes(task, per_piece), 0, resources);
  HostArray<std::byte> ranked(per_section * found.all_probes_bytes(), "probes", resources);
  std::vector<uint32_t> positions(static_cast<size_t>(cells));
  const Resources on_host = resources.with_device(Device::cpu()).with_progress({});
  const auto pass_with = [&](int64_t rows, int64_t staged_cells) {
    return Footprint{pass_bytes(task.x, rows) + rows * found.all_probes_bytes() +
                     slot_bytes(task, {per_piece, staged_cells})};
  };
  const int64_t at_once = rows_that_fit(least.cells, cells, on_host,
                                        [&](int64_t some) { return pass_with(kUsualPassRows, some); });
  const int64_t batch = rows_that_fit(kFewestPassRows, most_pass_rows(task.x), on_host,
                                      [&](int64_t rows) { return pass_with(rows, at_once); });
  const HostArray<std::byte> probes(batch * found.all_probes_bytes(), "probes", resources);
  if (counts_only(resources)) {
    const Reservation staging(slot_bytes(task, {per_piece, at_once}), 0, resources);
    (void)pass_over(task.x, "order", {batch}, nullptr, resources, {});
    return;
  }
  std::vector<int64_t> head{per_piece};
  head.resize(static_cast<size_t>(cells) + 1);
  ProbeReader(*folder, steps, found, ranked).add_sizes(std::span(head).subspan(1));
  for (int64_t at = 0; at < cells; ++at) positions[order[static_cast<size_t>(at)]] = static_cast<uint32_t>(at);
  const PieceLayout layout(order, std::span(head).subspan(1), per_piece);
  folder->require_space(all * record.bytes());
  StepWriter writer(*folder, names.rows);
  std::optional<StepWriter> near;
  {
    std::vector<int64_t> sizes{static_cast<int64_t>(head.size()) * 8};
    for (int64_t piece = 0; piece < layout.pieces(); ++piece) {
      sizes.push_back(layout.rows(piece) * record.numbered_bytes());
    }
    writer.lay_out(sizes);
    if (task.ranks_all()) {
      for (int64_t piece = 0; piece < layout.pieces(); ++piece) {
        sizes[static_cast<size_t>(piece)] = layout.rows(piece) * record.all_probes_bytes();
      }
      sizes.pop_back();
      near.emplace(*folder, names.near);
      near->lay_out(sizes);
    }
  }
  writer.put(0, std::as_bytes(std::span(head)));
  PieceStaging staging(writer, near ? &*near : nullptr, layout, record, at_once, resources);
  for (int64_t first_cell = 0; first_cell < cells; first_cell += at_once) {
    ProbeReader read(*folder, steps, found, ranked);
    staging.begin(first_cell, std::min(at_once, cells - first_cell), positions);
    const auto put = [&](int64_t first, const MatrixView& rows) {
      read.read(first, rows.rows(), probes.data());
      staging.add(rows, first, probes.data(), found, on_host);
    };
    pass_over(task.x, "order", {batch}, &hashes, resources, put);
  }
  if (near) near->commit();
  writer.commit();  // the last: with it the store is there
}

namespace {

// Writes the probes of pieces first_piece .. end_piece - 1, which are stored one behind the other.
void put_near(StepWriter& writer, const PieceLayout& layout, const StoredRecord& record, int64_t first_piece,
              int64_t end_piece, const std::byte* stored, const Resources& resources) {
  const int64_t rows_at_once = std::max<int64_t>(1, kNearWriteBytes / record.all_probes_bytes());
  std::vector<int64_t> begins{first_piece};
  while (begins.back() < end_piece) begins.push_back(layout.pieces_within(begins.back(), end_piece, rows_at_once));
  const int64_t before = layout.place(first_piece);
  ProgressMeter meter("near cells", std::ssize(begins) - 1, resources);
  parallel_for(std::ssize(begins) - 1, meter, resources, [&](int64_t number, int) {
    const int64_t first = begins[static_cast<size_t>(number)];
    const int64_t end = begins[static_cast<size_t>(number) + 1];
    const int64_t rows = layout.place(end) - layout.place(first);
    const std::byte* const from = stored + (layout.place(first) - before) * record.all_probes_bytes();
    writer.put(first, end, some_bytes(from, rows * record.all_probes_bytes()));
  });
}

}  // namespace

void write_near(WorkFolder* folder, const StoreNames& names, const SourceRanking& task, std::span<const uint32_t> order,
                const Resources& resources) {
  const StoredRecord record = record_of(task);
  const bool on_gpu = resources.device().kind == DeviceKind::cuda;
  const int64_t most = std::max<int64_t>(most_piece_rows(record), on_gpu ? kMostNearRowsOnGpu : kMostNearRows);
  NearRanks ranks({task.x.cols(), task.x.dtype(), task.centres, task.metric, task.longest, task.probes}, resources);
  const int64_t batch = rows_that_fit(
      std::min(most_piece_rows(record), task.x.rows()), std::min(most, task.x.rows()), resources, [&](int64_t rows) {
        return Footprint{2 * rows * (record.row_bytes + record.all_probes_bytes())}.beside(ranks.footprint(rows));
      });
  const HostArray<std::byte> runs_memory(
      resources.threads() * std::max(kNearRunBytes, most_piece_rows(record) * record.numbered_bytes()),
      "rows of some cells", resources);
  MatrixBuffer packed[2];
  HostArray<std::byte> ranked[2];  // probes as they are stored
  for (MatrixBuffer& some : packed) {
    some = MatrixBuffer(task.x.dtype(), batch, task.x.cols(), "rows of some cells", resources);
  }
  for (HostArray<std::byte>& some : ranked) {
    some = HostArray<std::byte>(batch * record.all_probes_bytes(), "probes", resources);
  }
  ranks.take_memory(batch);
  if (counts_only(resources)) return;
  const CellStore store(folder->open(names.rows), std::nullopt, order, record, resources);
  const PieceLayout& layout = store.layout();
  StepWriter writer(*folder, names.near);
  {
    std::vector<int64_t> sizes;
    for (int64_t piece = 0; piece < layout.pieces(); ++piece) {
      sizes.push_back(layout.rows(piece) * record.all_probes_bytes());
    }
    writer.lay_out(sizes);
  }
  // Rows of the next batch are read while this one is ranked, and probes of the batch before are written.
  const Resources beside = resources.with_progress({}).with_cancel(CancelToken());
  std::future<void> coming;
  const auto end_of = [&](int64_t piece) { return layout.pieces_within(piece, layout.pieces(), batch); };
  const auto begin_reading = [&](int64_t piece, MatrixBuffer& to) {
    auto* const rows = static_cast<std::byte*>(to.mutable_view().row(0));
    const auto read = [&store, &beside, &runs_memory, piece, end = end_of(piece), rows] {
      store.read_vectors(piece, end, runs_memory, rows, beside);
    };
    coming = start_beside(read);
  };
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("near cells", task.x.rows(), resources);
  begin_reading(0, packed[0]);
  std::future<void> written;
  int64_t turn = 0;
  for (int64_t piece = 0; piece < layout.pieces(); turn = 1 - turn) {
    const int64_t end = end_of(piece);
    const int64_t first = layout.place(piece);
    coming.get();
    if (end < layout.pieces()) begin_reading(end, packed[1 - turn]);
    std::vector<NearRanks::Run> runs;
    for (int64_t next = piece; next < end;) {
      const int64_t position = layout.position(next);
      const int64_t until = std::min(end, layout.first_piece(position + 1));
      runs.push_back({layout.cell(position), layout.place(until) - layout.place(next)});
      next = until;
    }
    const int64_t count = layout.place(end) - first;
    ranks.rank(packed[turn].view().slice(0, count), runs);
    if (written.valid()) written.get();
    std::byte* const stored = ranked[turn].data();
    for_row_blocks("near cells", count, quiet, [&](int64_t begin, int64_t until) {
      for (int64_t row = begin; row < until; ++row) {
        const uint32_t* const probes = ranks.probes(row);
        std::byte* const to = stored + row * record.all_probes_bytes();
        for (int64_t p = 0; p < task.probes; ++p) record.put_cell(to, p, probes[p]);
      }
    });
    written = start_beside([&writer, &layout, &record, &beside, piece, end, stored] {
      put_near(writer, layout, record, piece, end, stored, beside);
    });
    piece = end;
    meter.add(count);
    meter.poll();
  }
  if (written.valid()) written.get();
  meter.finish();
  writer.commit();
}

CellStore::CellStore(StepFile rows, std::optional<StepFile> near, std::span<const uint32_t> order,
                     const StoredRecord& record, const Resources& resources)
    : rows_(std::move(rows)), near_(std::move(near)), record_(record) {
  table_ = std::make_unique<const Reservation>(
      StepFile::table_bytes(rows_.sections()) + (near_ ? StepFile::table_bytes(near_->sections()) : 0), 0, resources);
  std::vector<int64_t> head(order.size() + 1);
  if (rows_.bytes(0) != static_cast<int64_t>(head.size()) * 8) {
    rows_.refuse("the step is of other cells");
  }
  rows_.read(0, head.data());
  layout_ = PieceLayout(order, std::span(head).subspan(1), std::max<int64_t>(1, head[0]));
  if (rows_.sections() != layout_.pieces() + 1 || (near_ && near_->sections() != layout_.pieces())) {
    rows_.refuse("the step is of other pieces");
  }
}

const std::byte* CellStore::read(int64_t first, int64_t end, std::byte* out) const {
  std::byte* const probes = out + (layout_.place(end) - layout_.place(first)) * record_.numbered_bytes();
  read_rows(first, end, out);
  read_near(first, end, probes);
  return probes;
}

void CellStore::read(int64_t first, int64_t end, const RowPlanes& to, const Resources& resources) const {
  const int64_t piece_bytes = layout_.rows_per_piece() * record_.bytes();
  const int64_t run = std::max<int64_t>(1, kMostRunBytes / piece_bytes);
  const int64_t run_bytes = run * piece_bytes;
  const HostArray<std::byte> memory(resources.threads() * run_bytes, "rows on their way to their block", resources);
  ProgressMeter meter("read", end - first, resources);
  parallel_for(divide_up(end - first, run), meter, resources, [&](int64_t number, int slot) {
    const int64_t from = first + number * run;
    const int64_t until = std::min(from + run, end);
    std::byte* const mine = memory.data() + slot * run_bytes;
    int64_t at = layout_.place(from) - layout_.place(first);
    read_near(from, until, to.probes + at * record_.all_probes_bytes());
    read_rows(from, until, mine);
    for_pieces(from, until, mine, mine, [&](int64_t rows, const std::byte* piece, const std::byte*) {
      std::memcpy(to.rows + at * record_.row_bytes, piece, static_cast<size_t>(rows * record_.row_bytes));
      std::memcpy(to.numbers + at, record_.numbers(piece, rows), static_cast<size_t>(rows * 4));
      at += rows;
    });
  });
}

void CellStore::read_vectors(int64_t first, int64_t end, const HostArray<std::byte>& memory, std::byte* rows,
                             const Resources& resources) const {
  const int64_t each = memory.size() / resources.threads();  // of a thread
  const int64_t run = std::max<int64_t>(1, each / (layout_.rows_per_piece() * record_.numbered_bytes()));
  ProgressMeter meter("read", end - first, resources);
  parallel_for(divide_up(end - first, run), meter, resources, [&](int64_t number, int slot) {
    const int64_t from = first + number * run;
    const int64_t until = std::min(from + run, end);
    std::byte* const mine = memory.data() + slot * each;
    read_rows(from, until, mine);
    std::byte* to = rows + (layout_.place(from) - layout_.place(first)) * record_.row_bytes;
    for_pieces(from, until, mine, mine, [&](int64_t count, const std::byte* piece, const std::byte*) {
      std::memcpy(to, piece, static_cast<size_t>(count * record_.row_bytes));
      to += count * record_.row_bytes;
    });
  });
}

int64_t CellStore::count_pairs(int64_t counted, const Resources& resources) const {
  const int64_t cells = static_cast<int64_t>(layout_.cells());
  const HostArray<int64_t> probing(cells, "the cells", resources);
  const HostArray<std::byte> some(layout_.rows_per_piece() * record_.all_probes_bytes(), "probes", resources);
  if (counts_only(resources)) return 0;
  std::fill(probing.begin(), probing.end(), int64_t{0});
  for (int64_t piece = 0; piece < layout_.pieces(); ++piece) {
    read_near(piece, piece + 1, some.data());
    for (int64_t row = 0; row < layout_.rows(piece); ++row) {
      const std::byte* const probes = some.data() + row * record_.all_probes_bytes();
      for (int64_t p = 0; p < counted; ++p) ++probing[record_.cell(probes, p)];
    }
    if (piece % 1024 == 0) resources.check_cancelled();
  }
  int64_t pairs = 0;
  for (int64_t at = 0; at < cells; ++at) pairs += probing[layout_.cell(at)] * layout_.rows_of_cell(at);
  return pairs;
}

}  // namespace kith
