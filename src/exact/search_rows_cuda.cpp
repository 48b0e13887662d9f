#include "exact/search_rows_cuda.hpp"

#include <kith/error.hpp>

#include "exact/finite_check.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "kernels/distance/kept_rows_cuda.hpp"
#include "kernels/product/operands_cuda.hpp"

#include <algorithm>
#include <string>

namespace kith {
namespace {

constexpr size_t kStatusBytes = sizeof(SearchStatus);

bool has_signs(DType dtype) { return dtype != DType::u8; }

}  // namespace

SearchRows::SearchRows(const KnnProblem& problem, const KnnPlan& plan, const KeptView& kept,
                       const SearchWorkspace& layout, const Resources& resources)
    : problem_(problem),
      plan_(plan),
      kept_(kept),
      layout_(layout),
      resources_(resources),
      context_(std::make_shared<DeviceContext>(plan.device.index, resources.options().stream)),
      workspace_(layout.bytes, "an exact search", context_, resources),
      upload_(plan.pinned_bytes > 0, resources, plan.gather_bytes) {
  if (problem.filter != FilterPath::mask) return;
  KITH_CUDA_CHECK(cudaMemcpyAsync(at<uint64_t>(layout_.kept), kept.bits,
                                  static_cast<size_t>((problem.rows + 63) / 64) * 8, cudaMemcpyHostToDevice, stream()));
}

DeviceRowsView SearchRows::load_queries(const MatrixView& queries, int64_t first_query) {
  check_on_device(queries, "query", context_->device());
  DeviceRowsView view = device_rows(queries);
  first_query_ = first_query;
  if (!lies_on(queries, context_->device())) {
    ProgressMeter meter("copy", queries.rows(), resources_);
    upload_.copy(queries, at<std::byte>(layout_.queries), stream(), meter);
    view.data = at<std::byte>(layout_.queries);
    view.stride = queries.cols();
  }
  KITH_CUDA_CHECK(cudaMemsetAsync(status(), 0xFF, kStatusBytes, stream()));
  RowFindings findings;
  // Products look for queries that are not finite where they round them.
  if (problem_.check_finite && can_be_infinite(view.dtype) && !products()) findings.first_bad = &status()->bad_query;
  if (problem_.metric == Metric::chi_square && has_signs(view.dtype)) {
    findings.first_negative = &status()->negative_query;
  }
  findings.inverse_norms = norms_at(layout_.query_norms);
  inspect_rows(view, problem_.cols, findings, stream());
  return view;
}

bool SearchRows::checks_base() const {
  return problem_.check_finite && !problem_.base_checked && can_be_infinite(problem_.base_dtype);
}

// What the list keeps of rows first_row .. first_row + rows - 1.
RowPicks SearchRows::picks_of(int64_t first_row, int64_t rows) const {
  const uint32_t* const end = kept_.list + kept_.count;
  const uint32_t* const first = std::lower_bound(kept_.list, end, first_row);
  return {first, first_row, std::lower_bound(first, end, first_row + rows) - first};
}

const uint32_t* SearchRows::bring_list(const uint32_t* list, int64_t count) const {
  auto* const target = at<uint32_t>(layout_.list);
  KITH_CUDA_CHECK(cudaMemcpyAsync(target, list, static_cast<size_t>(count) * 4, cudaMemcpyHostToDevice, stream()));
  return target;
}

void SearchRows::for_each_piece(const MatrixView& base, int64_t first_row, const PreparedBase* ready,
                                ProgressMeter& meter, const std::function<void(const ProductBase&)>& use) {
  const bool listed = problem_.filter == FilterPath::list;
  const RowPicks all = listed ? picks_of(first_row, base.rows()) : RowPicks{nullptr, 0, base.rows()};
  for (int64_t first = 0; first < all.count; first += piece_rows(plan_)) {
    RowPicks picks{nullptr, all.first_listed, std::min(piece_rows(plan_), all.count - first)};
    ProductBase piece;
    piece.first_row = first_row + first;
    piece.rows.count = picks.count;
    if (listed) {
      picks.list = piece.host_numbers = all.list + first;
      piece.rows.list = piece.numbers = bring_list(picks.list, picks.count);
      piece.rows.first_listed = static_cast<uint32_t>(first_row);
    }
    if (ready != nullptr) {
      take_prepared(*ready, listed ? 0 : first, piece);
    } else {
      if (problem_.base_prepared) throw InvalidState("the search was planned for a prepared base and was given none");
      piece.rows = arrive(listed ? base : base.slice(first, picks.count), picks, piece.numbers, meter);
      inspect(piece.rows);
    }
    if (products()) make_ready(ready != nullptr, piece);
    // Products look for rows that are not finite where they round them, and are waited for anyway.
    const bool negative_matters = problem_.metric == Metric::chi_square && !problem_.base_checked;
    if (!products() && ready == nullptr && (checks_base() || negative_matters)) (void)read_status(&piece);
    use(piece);
  }
}

// Brings the rows, or those picked of them, to the device, unless they lie there: then they are read by `list`.
DeviceRowsView SearchRows::arrive(const MatrixView& rows, const RowPicks& picks, const uint32_t* list,
                                  ProgressMeter& meter) {
  check_on_device(rows, "base", context_->device());
  DeviceRowsView view = device_rows(rows);
  view.count = picks.count;
  if (lies_on(rows, context_->device())) {
    view.list = list;
    view.first_listed = static_cast<uint32_t>(picks.first_listed);
    return view;
  }
  auto* const target = at<std::byte>(layout_.rows);
  if (picks.list == nullptr) {
    upload_.copy(rows, target, stream(), meter);
  } else {
    upload_.copy(rows, picks, target, stream(), meter);
  }
  view.data = target;
  view.stride = rows.cols();
  return view;
}

void SearchRows::inspect(DeviceRowsView& rows) const {
  RowFindings findings;
  if (checks_base() && !products()) findings.first_bad = &status()->bad_row;
  if (problem_.metric == Metric::chi_square && !problem_.base_checked && has_signs(rows.dtype)) {
    findings.first_negative = &status()->negative_row;
  }
  findings.inverse_norms = norms_at(layout_.row_norms);
  inspect_rows(rows, problem_.cols, findings, stream());
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
      auto* const norms = at<double>(layout_.row_norms);
      launch_keep_norms(rows.inverse_norms, rows.list, rows.first_listed, rows.count, norms, stream());
      rows.inverse_norms = norms;
    }
  }
  piece.rows = rows;
  if (!plan_.product.operands_ready) return;
  const int64_t chunks = operand_chunks(problem_.cols, operand_value_bytes(plan_.product.operands));
  piece.operands = base->operands().from(first, chunks);
}

void SearchRows::make_ready(bool prepared, ProductBase& piece) const {
  const OperandType type = plan_.product.operands;
  if (!prepared || !plan_.product.operands_ready) {
    piece.operands = {at<std::byte>(layout_.base_operands), at<std::byte>(layout_.base_terms),
                      at<float>(layout_.centre), at<BaseFacts>(layout_.base_facts)};
    make_operands(problem_.metric, type, piece.rows, problem_.cols, piece.operands,
                  checks_base() ? &status()->bad_row : nullptr, stream());
    return;
  }
  if (problem_.filter != FilterPath::mask) return;
  piece.kept = at<uint64_t>(layout_.kept);
  MaskTermsTask task;
  task.terms = reinterpret_cast<const uint32_t*>(piece.operands.terms);
  task.bits = piece.kept;
  task.first_row = static_cast<uint32_t>(piece.first_row);
  task.count = piece.rows.count;
  task.padded = operand_tiles(piece.rows.count) * kOperandTile;
  task.none = no_row_term(type);
  task.masked = at<uint32_t>(layout_.base_terms);
  launch_mask_terms(task, stream());
  piece.operands.terms = at<std::byte>(layout_.base_terms);
}

void SearchRows::for_each_tile(const ProductBase& piece, const std::function<void(const DirectTile&)>& use) const {
  if (piece.kept == nullptr) {
    for (int64_t first = 0; first < piece.rows.count; first += plan_.row_tile) {
      const int64_t count = std::min(plan_.row_tile, piece.rows.count - first);
      use({slice_rows(piece.rows, first, count), piece.first_row + first,
           piece.numbers == nullptr ? nullptr : piece.numbers + first});
    }
    return;
  }
  const RowPicks picks = picks_of(piece.first_row, piece.rows.count);
  for (int64_t first = 0; first < picks.count; first += plan_.row_tile) {
    DirectTile tile{piece.rows, piece.first_row, nullptr};
    tile.rows.count = std::min(plan_.row_tile, picks.count - first);
    tile.rows.list = tile.numbers = bring_list(picks.list + first, tile.rows.count);
    tile.rows.first_listed = static_cast<uint32_t>(piece.first_row);
    if (piece.rows.inverse_norms != nullptr) {
      auto* const norms = at<double>(layout_.row_norms);
      launch_keep_norms(piece.rows.inverse_norms, tile.rows.list, tile.rows.first_listed, tile.rows.count, norms,
                        stream());
      tile.rows.inverse_norms = norms;
    }
    use(tile);
  }
}

SearchStatus SearchRows::read_status(const ProductBase* piece) const {
  SearchStatus read;
  KITH_CUDA_CHECK(cudaMemcpyAsync(&read, status(), kStatusBytes, cudaMemcpyDeviceToHost, stream()));
  context_->synchronize();
  const auto number = [&](uint32_t row) { return piece == nullptr ? int64_t{row} : piece->number(row); };
  if (read.negative_query != kNoBadRow) throw_negative("query", first_query_ + read.negative_query);
  if (read.bad_query != kNoBadRow) throw_not_finite("query", first_query_ + read.bad_query);
  if (read.negative_row != kNoBadRow) throw_negative("base", number(read.negative_row));
  if (read.bad_row != kNoBadRow) throw_not_finite("base", number(read.bad_row));
  return read;
}

}  // namespace kith
