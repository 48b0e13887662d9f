#include "exact/packed_base.hpp"

#include "core/divide.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/select/candidate_list.hpp"
#include "rows/finite_check.hpp"
#include "rows/sample_mean.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace kith {
namespace {

// A panel's hits come to a candidate list together.
static_assert(kMostRowsPerPanel <= CandidateList::kLargestGroup);
constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr int64_t kFloat = sizeof(float);

PanelStep panel_step(KeyKind kind) {
  switch (kind) {
    case KeyKind::l1: return PanelStep::l1;
    case KeyKind::linf: return PanelStep::linf;
    case KeyKind::chi_square: return PanelStep::chi_square;
    default: return PanelStep::product;
  }
}

// For one thread.
int64_t scratch_bytes(PanelFormat format, int64_t cols, int64_t width) {
  return round_up(cols * kFloat, 64) + width * packed_bytes(format, cols);
}

}  // namespace

std::vector<float> choose_centre(KeyKind kind, const MatrixView& base) {
  if (!has_differences(kind)) return std::vector<float>(static_cast<size_t>(base.cols()), 0.0f);
  ViewSource rows(base);
  return sample_mean(rows, base.cols());
}

PackedBase::PackedBase(KeyKind kind, PanelFormat format, std::vector<float> centre, int64_t capacity,
                       const Resources& resources)
    : kind_(kind), format_(format), shape_(panel_shape(format)), centre_(std::move(centre)) {
  const int64_t rows = round_up(capacity, shape_.rows_per_panel);
  const auto cols = static_cast<int64_t>(centre_.size());
  panels_ = HostBuffer(rows * packed_bytes(format, cols), "the packed base", resources);
  terms_ = HostBuffer(rows * kFloat, "the packed base's norms", resources);
  if (!holds_bytes(format)) {
    norms_ = HostBuffer(rows / shape_.rows_per_panel * kFloat, "the packed base's norms", resources);
  }
  if (format == PanelFormat::screened) screen_ = BaseScreen(rows, cols, resources);
}

int64_t PackedBase::bytes_for(PanelFormat format, int64_t rows, int64_t cols, int threads) {
  const int64_t screen = format == PanelFormat::screened ? BaseScreen::bytes_for(rows + kMostRowsPerPanel, cols) : 0;
  return (rows + kMostRowsPerPanel) * (packed_bytes(format, cols) + 2 * kFloat) + screen +
         threads * scratch_bytes(format, cols, kMostRowsPerPanel);
}

bool PackedBase::fits(PanelFormat format) const {
  const PanelShape shape = panel_shape(format);
  const bool same = format == format_ || (holds_f32(format) && holds_f32(format_));
  return same && shape.rows_per_panel == shape_.rows_per_panel && shape.signed_bytes == shape_.signed_bytes;
}

bool PackedBase::serves(DType queries) const {
  return fits(choose_panel_format(kind_, queries, dtype_, static_cast<int64_t>(centre_.size()), cpu_extensions()));
}

PanelBase PackedBase::panels() const {
  return {panels_.data(),   terms_.as<float>(), norms_.as<float>(), format_, static_cast<int64_t>(centre_.size()),
          panel_step(kind_)};
}

BytePanelBase PackedBase::byte_panels() const {
  return {panels_.data(), terms_.as<int32_t>(), format_, static_cast<int64_t>(centre_.size()),
          has_differences(kind_) ? 2 : 1};
}

void PackedBase::pack(const MatrixView& base, bool check_finite, int64_t first_row, int64_t work_per_row,
                      ProgressMeter& meter, const Resources& resources) {
  rows_ = base.rows();
  dtype_ = base.dtype();
  constexpr int64_t kPanelsPerTask = 16;
  const int64_t tasks = (panel_count() + kPanelsPerTask - 1) / kPanelsPerTask;
  std::atomic<int64_t> first_bad{INT64_MAX};  // the first panel with a value that is not finite
  const int64_t bytes = scratch_bytes(format_, base.cols(), shape_.rows_per_panel);
  const HostBuffer scratch(resources.threads() * bytes, "packing", resources);
  parallel_for(tasks, meter, resources, [&](int64_t task, int slot) {
    std::byte* const mine = scratch.data() + slot * bytes;
    auto* const vectors = reinterpret_cast<uint32_t*>(mine + round_up(base.cols() * kFloat, 64));
    const int64_t end = std::min((task + 1) * kPanelsPerTask, panel_count());
    for (int64_t panel = task * kPanelsPerTask; panel < end; ++panel) {
      if (holds_bytes(format_)) {
        pack_bytes(base, panel, vectors);
        continue;
      }
      if (pack_floats(base, panel, reinterpret_cast<float*>(mine), vectors)) continue;
      int64_t seen = first_bad.load();
      while (panel < seen && !first_bad.compare_exchange_weak(seen, panel)) {
      }
    }
    meter.add((end - task * kPanelsPerTask) * shape_.rows_per_panel * work_per_row);
  });
  if (!check_finite || first_bad == INT64_MAX) return;
  int64_t row = first_bad * shape_.rows_per_panel;
  while (row_is_finite(base, row)) ++row;
  throw_not_finite("base", first_row + row);
}

void PackedBase::pack_bytes(const MatrixView& base, int64_t panel, uint32_t* scratch) {
  const int64_t width = shape_.rows_per_panel;
  const int64_t first = panel * width;
  const int64_t count = std::min(width, base.rows() - first);
  const int64_t cols = base.cols();
  const int64_t bytes = packed_bytes(format_, cols);
  int32_t* const terms = terms_.as<int32_t>() + first;
  for (int64_t i = 0; i < count; ++i) {
    const auto* const row = reinterpret_cast<const uint8_t*>(base.row(first + i));
    terms[i] = format_ == PanelFormat::bits ? 0 : byte_row_term(format_, shape_, kind_, byte_sums(format_, row, cols));
    encode_byte_row(format_, shape_, row, cols, bytes, reinterpret_cast<uint8_t*>(scratch) + i * bytes);
  }
  std::fill(terms + count, terms + width, kLargestLimit / 2);
  pack_panel(format_, cols, scratch, count, width, panels_.data() + first * packed_bytes(format_, cols));
}

bool PackedBase::pack_floats(const MatrixView& base, int64_t panel, float* row, uint32_t* scratch) {
  const int64_t width = shape_.rows_per_panel;
  const int64_t first = panel * width;
  const int64_t count = std::min(width, base.rows() - first);
  const int64_t cols = base.cols();
  float* terms = terms_.as<float>() + first;
  float largest = 0;
  bool finite = true;
  if (format_ == PanelFormat::screened) screen_.clear_panel(panel, count);
  for (int64_t i = 0; i < count; ++i) {
    widen_row(base, first + i, row);
    if (has_differences(kind_)) {
      for (int64_t c = 0; c < cols; ++c) row[c] -= centre_[static_cast<size_t>(c)];
    }
    double squared = canonical_squared_norm_cpu(row, cols);
    if (!std::isfinite(squared)) finite &= row_is_finite(base, first + i);  // else it is the difference that overflows
    if (kind_ == KeyKind::cosine) {
      const double inverse = canonical_inverse_norm(squared);
      for (int64_t c = 0; c < cols; ++c) row[c] = static_cast<float>(row[c] * inverse);
      if (std::isfinite(squared)) squared = 1;
    }
    terms[i] = has_differences(kind_) ? static_cast<float>(squared) : 0.0f;
    const float norm = squared < kLargestSquaredNorm ? static_cast<float>(std::sqrt(squared)) : kInfinity;
    largest = std::max(largest, norm);
    if (format_ == PanelFormat::screened) screen_.put(panel, i, row);
    encode_floats(format_, row, cols, 1.0f, scratch + i * packed_bytes(format_, cols) / kFloat);
  }
  std::fill(terms + count, terms + width, kInfinity);
  norms_.as<float>()[panel] = largest;
  pack_panel(format_, cols, scratch, count, width, panels_.data() + first * packed_bytes(format_, cols));
  return finite;
}

}  // namespace kith
