#include "kernels/panels/packed_rows.hpp"

#include "core/infinity.hpp"
#include "core/typed_row.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/panel_format.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_sample.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace kith {

PanelStep panel_step(KeyKind kind) {
  switch (kind) {
    case KeyKind::l1: return PanelStep::l1;
    case KeyKind::linf: return PanelStep::linf;
    case KeyKind::chi_square: return PanelStep::chi_square;
    default: return PanelStep::product;
  }
}

std::vector<float> choose_origin(KeyKind kind, const MatrixView& rows) {
  if (!has_differences(kind)) return std::vector<float>(static_cast<size_t>(rows.cols()), 0.0f);
  ViewSource source(rows);
  return sample_mean(source, rows.cols());
}

PackedRows::PackedRows(KeyKind kind, PanelFormat format, std::vector<float> origin, int64_t capacity,
                       const Resources& resources)
    : kind_(kind), format_(format), shape_(panel_shape(format)), origin_(std::move(origin)) {
  const int64_t rows = round_up(capacity, shape_.rows_per_panel);
  panels_ = HostBuffer(rows * packed_bytes(format, cols()), "the packed rows", resources);
  terms_ = HostBuffer(array_bytes<float>(rows), "the packed rows' norms", resources);
  if (!holds_bytes(format)) {
    norms_ = HostArray<float>(rows / shape_.rows_per_panel, "the packed rows' norms", resources);
  }
  if (has_screen(format)) screen_ = BaseScreen(rows, cols(), resources);
}

int64_t PackedRows::bytes_for(PanelFormat format, int64_t rows, int64_t cols, int threads) {
  const int64_t padded = rows + kMostRowsPerPanel;
  const int64_t screen = has_screen(format) ? BaseScreen::bytes_for(padded, cols) : 0;
  return padded * packed_bytes(format, cols) + array_bytes<float>(2 * padded) + screen +
         threads * scratch_bytes(format, cols);
}

bool PackedRows::fits(PanelFormat format) const {
  const PanelShape shape = panel_shape(format);
  const bool same = format == format_ || (holds_f32(format) && holds_f32(format_));
  return same && shape.rows_per_panel == shape_.rows_per_panel && shape.signed_bytes == shape_.signed_bytes;
}

PanelBase PackedRows::panels() const {
  return {panels_.data(), terms_.as<float>(), norms_.data(), format_, cols(), panel_step(kind_)};
}

BytePanelBase PackedRows::byte_panels() const {
  return {panels_.data(), terms_.as<int32_t>(), format_, cols(), has_differences(kind_) ? 2 : 1};
}

void PackedRows::pack(const RowGather& rows, const PackOptions& options, ProgressMeter& meter,
                      const Resources& resources) {
  begin(rows);
  constexpr int64_t kPanelsPerTask = 16;
  std::atomic<int64_t> first_bad{INT64_MAX};  // the first panel with a value that is not finite
  const int64_t bytes = PanelScratch::bytes_for(format_, cols(), shape_.rows_per_panel);
  const HostBuffer scratch(resources.threads() * bytes, "packing", resources);
  parallel_for(divide_up(panel_count(), kPanelsPerTask), meter, resources, [&](int64_t task, int slot) {
    std::byte* const mine = scratch.data() + slot * bytes;
    const int64_t end = std::min((task + 1) * kPanelsPerTask, panel_count());
    for (int64_t panel = task * kPanelsPerTask; panel < end; ++panel) {
      if (fill_panel(rows, panel, mine)) continue;
      int64_t seen = first_bad.load();
      while (panel < seen && !first_bad.compare_exchange_weak(seen, panel)) {
      }
    }
    meter.add((end - task * kPanelsPerTask) * shape_.rows_per_panel * options.work_per_row);
  });
  if (!options.check_finite || first_bad == INT64_MAX) return;
  int64_t row = first_bad * shape_.rows_per_panel;
  while (row_is_finite(rows.collection(), rows.number(row))) ++row;
  throw_not_finite("base", options.first_row + rows.number(row));
}

void PackedRows::pack(const RowGather& rows, std::byte* scratch) {
  begin(rows);
  for (int64_t panel = 0; panel < panel_count(); ++panel) fill_panel(rows, panel, scratch);
}

int64_t PackedRows::scratch_bytes(PanelFormat format, int64_t cols) {
  return PanelScratch::bytes_for(format, cols, kMostRowsPerPanel);
}

void PackedRows::begin(const RowGather& rows) {
  rows_ = rows.rows();
  dtype_ = rows.dtype();
}

bool PackedRows::pack_bytes(const RowGather& rows, int64_t panel, std::byte* scratch) {
  const int64_t width = shape_.rows_per_panel;
  const int64_t first = panel * width;
  const int64_t count = std::min(width, rows.rows() - first);
  const int64_t bytes = packed_bytes(format_, cols());
  uint8_t* const packed = PanelScratch(scratch, cols()).packed_bytes;
  int32_t* const terms = terms_.as<int32_t>() + first;
  for (int64_t i = 0; i < count; ++i) {
    const auto* const row = typed_row<uint8_t>(rows.collection(), rows.number(first + i));
    terms[i] =
        format_ == PanelFormat::bits ? 0 : byte_row_term(format_, shape_, kind_, byte_sums(format_, row, cols()));
    encode_byte_row(format_, shape_, row, cols(), bytes, packed + i * bytes);
  }
  std::fill(terms + count, terms + width, kLargestLimit / 2);
  pack_panel(format_, cols(), packed, count, width, panels_.data() + first * bytes);
  return true;
}

bool PackedRows::pack_floats(const RowGather& rows, int64_t panel, std::byte* scratch) {
  const int64_t width = shape_.rows_per_panel;
  const int64_t first = panel * width;
  const int64_t count = std::min(width, rows.rows() - first);
  const int64_t bytes = packed_bytes(format_, cols());
  const PanelScratch room(scratch, cols());
  float* const row = room.vector;
  float* const terms = terms_.as<float>() + first;
  float largest = 0;
  bool finite = true;
  if (has_screen(format_)) screen_.clear_panel(panel, count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = rows.number(first + i);
    widen_row(rows.collection(), number, row);
    const double squared = move_vector(kind_, origin_, row, row);
    // Else it is the difference that overflows.
    if (!std::isfinite(squared)) finite &= row_is_finite(rows.collection(), number);
    terms[i] = has_differences(kind_) ? static_cast<float>(squared) : 0.0f;
    largest = std::max(largest, squared < kLargestSquaredNorm ? static_cast<float>(std::sqrt(squared)) : kInfinity);
    if (has_screen(format_)) screen_.put(panel, i, row);
    if (bytes > 0) encode_floats(format_, row, cols(), 1.0f, room.packed + i * bytes / 4);
  }
  std::fill(terms + count, terms + width, kInfinity);
  norms_[panel] = largest;
  if (bytes > 0) pack_panel(format_, cols(), room.packed, count, width, panels_.data() + first * bytes);
  return finite;
}

}  // namespace kith
