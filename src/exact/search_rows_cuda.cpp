#include "exact/search_rows_cuda.hpp"

#include <kith/error.hpp>

#include "exact/prepared_base_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "kernels/matrix/operands_cuda.hpp"
#include "rows/finite_check.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace kith {
namespace {

static_assert(KeptRows::kRankRows == kKeptRankRows);

bool has_signs(DType dtype) { return dtype != DType::u8; }

}  // namespace

SearchRows::SearchRows(const SearchTask& task, const KnnCudaPlan& plan, const KeptRows* kept,
                       const SearchWorkspace& layout, const Resources& resources, RowNames names)
    : task_(task),
      plan_(plan),
      kept_(kept),
      layout_(layout),
      resources_(resources),
      names_(names),
      context_(std::make_shared<DeviceContext>(plan.device.index, resources.options().stream)),
      workspace_(layout.bytes, "an exact search", context_, resources),
      upload_(plan.pinned_bytes > 0, resources, plan.gather_bytes) {
  if ((takes_few(task, plan) || takes_screen(task, plan)) && !context_->counts_only()) few_.emplace(context_->device());
  if (rows_come_ahead(task, plan)) {
    ahead_ = std::make_unique<RowsAhead>(plan.device.index, upload_, resources);
    for (const int buffer : {0, 1}) ahead_->used(buffer, stream());  // the workspace is there in that stream's order
  }
  const bool masked = task.filter == FilterPath::mask;
  if (!masked && (task.filter != FilterPath::list || kept->bits() == nullptr)) return;
  const int64_t rows = masked ? task.rows : task.shape.rows;
  context_->copy_values(at(layout_.kept), kept->bits(), KeptRows::words_for(rows));
  if (kept->ranks() != nullptr) context_->copy_values(at(layout_.ranks), kept->ranks(), KeptRows::ranks_for(rows));
}

DeviceRowsView SearchRows::load_queries(const MatrixView& queries, int64_t first_query) {
  check_on_device(queries, names_.query, context_->device());
  DeviceRowsView view = device_rows(queries);
  first_query_ = first_query;
  const bool here = !lies_on(queries, context_->device());
  if (here) {
    view.data = at(layout_.queries);
    view.stride = queries.cols();
  }
  if (few_) few_->begin(stream());
  const int64_t row_bytes = queries.cols() * size_of(queries.dtype());
  const int64_t bytes = queries.rows() * row_bytes;
  std::byte* const to = here && few_ ? few_->place_for(bytes) : nullptr;
  if (to != nullptr) {
    for (int64_t i = 0; i < queries.rows(); ++i) {
      std::memcpy(to + i * row_bytes, queries.row(i), static_cast<size_t>(row_bytes));
    }
    few_->send(bytes, at(layout_.queries), *context_);
  } else if (here) {
    const Resources quiet = resources_.with_progress({});  // the copy is part of the search
    ProgressMeter meter("copy", queries.rows(), quiet);
    upload_.copy(queries, at(layout_.queries), stream(), meter);
  }
  if (!few_ || looks_at_rows()) reset_status();
  if (!few_) look_at_queries(view);
  return view;
}

void SearchRows::look_at_queries(DeviceRowsView& queries) {
  if (few_) few_->bring(at(layout_.queries), *context_);
  if (few_ && !looks_at_rows()) reset_status();
  RowFindings findings;
  // Products look for queries that are not finite where they round them.
  if (task_.request.check_finite && can_be_infinite(queries.dtype) && !products()) {
    findings.first_bad = &status()->bad_query;
  }
  if (task_.shape.metric == Metric::chi_square && has_signs(queries.dtype)) {
    findings.first_negative = &status()->negative_query;
  }
  findings.inverse_norms = norms_at(layout_.query_norms);
  inspect_rows(queries, task_.shape.cols, findings, stream());
}

bool SearchRows::checks_base() const {
  return task_.request.check_finite && !task_.base_checked() && can_be_infinite(task_.shape.base_dtype);
}

// The direct engine reads every row: where nothing else is asked of them, it looks at them too.
bool SearchRows::leaves_checks() const {
  return !products() && task_.request.what == Wanted::nearest && !task_.request.given_keys &&
         task_.shape.metric != Metric::cosine && task_.shape.metric != Metric::chi_square;
}

// From the list where there is one, else made from the bits.
const uint32_t* SearchRows::bring_numbers(int64_t place, int64_t count) const {
  auto* const target = at(layout_.list);
  if (kept_->list() != nullptr) {
    context_->copy_values(target, kept_->list() + place, count);
    return target;
  }
  KeptNumbersTask task;
  task.bits = at(layout_.kept);
  task.ranks = at(layout_.ranks);
  task.first_rank = kept_->row_at(place) / KeptRows::kRankRows;
  task.end_rank = kept_->row_at(place + count - 1) / KeptRows::kRankRows + 1;
  task.words = KeptRows::words_for(task_.filter == FilterPath::mask ? task_.rows : task_.shape.rows);
  task.first_place = static_cast<uint32_t>(place);
  task.count = static_cast<uint32_t>(count);
  task.numbers = target;
  launch_kept_numbers(task, stream());
  return target;
}

int64_t SearchRows::piece_size(const Run& run, int64_t first) const {
  return std::min(piece_rows(plan_), run.rows - first);
}

// What picks_of() picks from.
MatrixView SearchRows::rows_of(const Run& run, int64_t first) const {
  return task_.filter == FilterPath::list ? run.base : run.base.slice(first, piece_size(run, first));
}

RowPicks SearchRows::picks_of(const Run& run, int64_t first) const {
  const bool by_list = task_.filter == FilterPath::list && kept_->list() != nullptr;
  return {by_list ? kept_->list() + run.first_place + first : nullptr, run.first_row, piece_size(run, first)};
}

void SearchRows::for_each_piece(const MatrixView& base, int64_t first_row, const PreparedBase* ready,
                                ProgressMeter& meter, const std::function<void(const ProductBase&)>& use,
                                bool with_operands) {
  const bool listed = task_.filter == FilterPath::list;
  const int64_t first_place = listed ? kept_->count_before(first_row) : 0;
  const Run run{base, first_row, first_place,
                listed ? kept_->count_before(first_row + base.rows()) - first_place : base.rows()};
  for (int64_t first = 0; first < run.rows; first += piece_rows(plan_)) {
    ProductBase piece;
    piece.first_row = first_row + first;
    piece.rows.count = piece_size(run, first);
    if (listed) {
      piece.first_place = first_place + first;
      piece.rows.list = piece.numbers = bring_numbers(piece.first_place, piece.rows.count);
      piece.rows.first_listed = static_cast<uint32_t>(first_row);
    }
    if (ready != nullptr) {
      take_prepared(*ready, listed ? 0 : first, piece);
      const RowFindings findings = checks(true);
      if (findings.wanted()) launch_inspect_rows(piece.rows, task_.shape.cols, findings, stream());
    } else {
      if (task_.prepared) throw InvalidState("the search was planned for a prepared base and was given none");
      piece.rows = arrive(run, first, piece.numbers, meter);
      inspect(piece.rows);
    }
    if (products() && with_operands) make_ready(ready != nullptr, piece);
    use(piece);  // and looks at the status when it waits anyway
    if (ahead_ != nullptr) ahead_->used(static_cast<int>(first / piece_rows(plan_) % 2), stream());
  }
}

// Brings the rows of a piece to the device, unless they lie there: then they are read by `list`.
DeviceRowsView SearchRows::arrive(const Run& run, int64_t first, const uint32_t* list, ProgressMeter& meter) {
  check_on_device(run.base, names_.base, context_->device());
  const MatrixView rows = rows_of(run, first);
  const RowPicks picks = picks_of(run, first);
  DeviceRowsView view = device_rows(rows);
  view.count = picks.count;
  if (lies_on(rows, context_->device())) {
    view.list = list;
    view.first_listed = static_cast<uint32_t>(picks.first_listed);
    return view;
  }
  const int64_t step = piece_rows(plan_);
  const int buffer = ahead_ == nullptr ? 0 : static_cast<int>(first / step % 2);
  const auto place = [&](int i) { return at(i == 0 ? layout_.rows : layout_.rows_ahead); };
  if (ahead_ != nullptr) {
    if (first == 0) ahead_->begin(buffer, rows, picks, place(buffer));
    ahead_->await(buffer, stream());
    const int64_t next = first + step;
    if (next < run.rows) ahead_->begin(1 - buffer, rows_of(run, next), picks_of(run, next), place(1 - buffer));
  } else if (picks.list == nullptr) {
    upload_.copy(rows, place(0), stream(), meter);
  } else {
    upload_.copy(rows, picks, place(0), stream(), meter);
  }
  view.data = place(buffer);
  view.stride = rows.cols();
  return view;
}

RowFindings SearchRows::checks(bool finite) const {
  RowFindings findings;
  if (checks_base() && finite) findings.first_bad = &status()->bad_row;
  if (task_.shape.metric == Metric::chi_square && !task_.base_checked() && has_signs(task_.shape.base_dtype)) {
    findings.first_negative = &status()->negative_row;
  }
  return findings;
}

void SearchRows::inspect(DeviceRowsView& rows) const {
  RowFindings findings = checks(!products() && !leaves_checks());
  findings.inverse_norms = norms_at(layout_.row_norms);
  inspect_rows(rows, task_.shape.cols, findings, stream());
}

// Rows from `first` on, or those of the piece's list.
void SearchRows::take_prepared(const PreparedBase& ready, int64_t first, ProductBase& piece) const {
  const auto* base = dynamic_cast<const PreparedBaseCuda*>(&ready);
  if (base == nullptr || base->device() != context_->device()) {
    throw InvalidState("the index is prepared for another device than cuda:" + std::to_string(context_->device()));
  }
  DeviceRowsView rows = slice_rows(base->rows(), first, piece.rows.count);
  if (piece.rows.list != nullptr) {
    rows.list = piece.rows.list;
    rows.first_listed = piece.rows.first_listed;
    if (rows.inverse_norms != nullptr) {
      auto* const norms = at(layout_.row_norms);
      launch_keep_norms(rows.inverse_norms, rows.list, rows.first_listed, rows.count, norms, stream());
      rows.inverse_norms = norms;
    }
  }
  piece.rows = rows;
  if (!products() || !plan_.product->operands_ready) return;
  const int64_t chunks = operand_chunks(task_.shape.cols, operand_value_bytes(plan_.product->operands));
  piece.operands = base->operands().from(first, chunks);
  if (few_ && first == 0 && piece.rows.count == base->rows().count) piece.screen = base->byte_screen();
}

void SearchRows::check_finite(const DeviceRowsView& queries, const ProductBase& piece) const {
  const bool looks = task_.request.check_finite && can_be_infinite(queries.dtype);
  if (looks) launch_inspect_rows(queries, task_.shape.cols, {.first_bad = &status()->bad_query}, stream());
  if (checks_base()) launch_inspect_rows(piece.rows, task_.shape.cols, {.first_bad = &status()->bad_row}, stream());
}

void SearchRows::make_ready(bool prepared, ProductBase& piece, bool parts_far_rows) const {
  const OperandType type = plan_.product->operands;
  if (!prepared || !plan_.product->operands_ready) {
    piece.operands = {at(layout_.base_operands), at(layout_.base_terms), at(layout_.centre), at(layout_.base_bounds)};
    if (plan_.product->streams()) {
      sample_operands(task_.shape.metric, type, piece.rows, task_.shape.cols, piece.operands, stream());
    } else {
      make_operands(task_.shape.metric, type, piece.rows, task_.shape.cols, piece.operands, bad_row(), stream(),
                    parts_far_rows);
    }
    return;
  }
  if (task_.filter != FilterPath::mask) return;
  piece.kept = at(layout_.kept);
  MaskTermsTask task;
  task.terms = piece.operands.terms;
  task.bits = piece.kept;
  task.first_row = static_cast<uint32_t>(piece.first_row);
  task.count = piece.rows.count;
  task.padded = operand_tiles(piece.rows.count) * kOperandTile;
  task.none = no_row_term(type);
  task.masked = at(layout_.base_terms);
  launch_mask_terms(task, stream());
  piece.operands.terms = at(layout_.base_terms);
}

void SearchRows::for_each_tile(const ProductBase& piece, const std::function<void(const DirectTile&)>& use) const {
  if (piece.kept == nullptr) {
    for (int64_t first = 0; first < piece.rows.count; first += plan_.row_tile) {
      const int64_t count = std::min(plan_.row_tile, piece.rows.count - first);
      use({slice_rows(piece.rows, first, count), piece.first_row + first,
           piece.numbers == nullptr ? nullptr : piece.numbers + first, piece.centre});
    }
    return;
  }
  const int64_t first_place = kept_->count_before(piece.first_row);
  const int64_t kept = kept_->count_before(piece.first_row + piece.rows.count) - first_place;
  for (int64_t first = 0; first < kept; first += plan_.row_tile) {
    DirectTile tile{piece.rows, piece.first_row, nullptr};
    tile.rows.count = std::min(plan_.row_tile, kept - first);
    tile.rows.list = tile.numbers = bring_numbers(first_place + first, tile.rows.count);
    tile.rows.first_listed = static_cast<uint32_t>(piece.first_row);
    if (piece.rows.inverse_norms != nullptr) {
      auto* const norms = at(layout_.row_norms);
      launch_keep_norms(piece.rows.inverse_norms, tile.rows.list, tile.rows.first_listed, tile.rows.count, norms,
                        stream());
      tile.rows.inverse_norms = norms;
    }
    use(tile);
  }
}

int64_t SearchRows::number_of(const ProductBase* piece, uint32_t row) const {
  if (piece == nullptr) return row;
  return piece->numbers == nullptr ? piece->first_row + row : kept_->row_at(piece->first_place + row);
}

SearchStatus SearchRows::read_status(const ProductBase* piece) const {
  SearchStatus read;
  context_->copy_values(&read, status(), 1);
  context_->synchronize();
  check_status(read, piece);
  return read;
}

void SearchRows::check_status(const SearchStatus& read, const ProductBase* piece) const {
  if (read.negative_query != kNoBadRow) throw_negative(names_.query, first_query_ + read.negative_query);
  if (read.bad_query != kNoBadRow) throw_not_finite(names_.query, first_query_ + read.bad_query);
  if (read.negative_row != kNoBadRow) throw_negative(names_.base, number_of(piece, read.negative_row));
  if (read.bad_row != kNoBadRow) throw_not_finite(names_.base, number_of(piece, read.bad_row));
}

}  // namespace kith
