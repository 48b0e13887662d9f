#include "kernels/panels/packed_rows.hpp"

#include "core/half.hpp"
#include "core/infinity.hpp"
#include "core/memory_budget.hpp"
#include "core/typed_row.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/panel_format.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_sample.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kPanelsPerTask = 16;

}  // namespace

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
  std::vector<float> mean = sample_mean(source, rows.cols());
  // A few very long rows dominate the mean; then most rows are nearer to the origin than to it.
  constexpr int64_t kTried = 31;
  const int64_t tried = std::min(kTried, rows.rows());
  std::vector<float> row(mean.size());
  std::vector<double> moved;
  std::vector<double> still;
  for (int64_t i = 0; i < tried; ++i) {
    widen_row(rows, i * rows.rows() / tried, row.data());
    const double length = canonical_squared_norm_cpu(row.data(), rows.cols());
    const double apart = move_vector(kind, mean, row.data(), row.data());
    if (!std::isfinite(length) || !std::isfinite(apart)) continue;
    still.push_back(length);
    moved.push_back(apart);
  }
  const auto middle_of = [](std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  if (!moved.empty() && middle_of(still) < middle_of(moved)) std::fill(mean.begin(), mean.end(), 0.0f);
  return mean;
}

// Its square, and that square's inverse, are floats too.
float choose_scale(KeyKind kind, const MatrixView& rows, const std::vector<float>& origin) {
  constexpr float kSmall = 1e-12f;
  constexpr float kLarge = 1e12f;
  if (!has_differences(kind) || rows.rows() == 0) return 1;
  std::vector<float> row(origin.size());
  const int64_t samples = sampled_rows(rows.rows());
  float largest = 0;
  for (int64_t i = 0; i < samples; ++i) {
    widen_row(rows, i * rows.rows() / samples, row.data());
    for (size_t c = 0; c < row.size(); ++c) {
      const float apart = std::fabs(row[c] - origin[c]);
      if (apart < kInfinity) largest = std::max(largest, apart);
    }
  }
  if (largest == 0 || (largest > kSmall && largest < kLarge)) return 1;
  return std::ldexp(1.0f, std::clamp(-std::ilogb(largest), -60, 60));
}

PackedRows::PackedRows(KeyKind kind, PanelFormat format, std::vector<float> origin, int64_t capacity,
                       const Resources& resources)
    : kind_(kind), format_(format), shape_(panel_shape(format)), origin_(std::move(origin)) {
  const int64_t rows = round_up(capacity, shape_.rows_per_panel);
  panels_ = HostBuffer(rows * packed_bytes(format, cols()), "the packed rows", resources);
  terms_ = HostBuffer(array_bytes<float>(rows), "the packed rows' norms", resources);
  if (!holds_bytes(format)) {
    norms_ = HostArray<float>(rows / shape_.rows_per_panel, "the packed rows' norms", resources);
    row_norms_ = HostArray<float>(rows, "the packed rows' norms", resources);
    repeats_ = HostArray<uint8_t>(rows, "the packed rows' norms", resources);
  }
  if (has_screen(format)) screen_ = BaseScreen(rows, cols(), resources);
}

int64_t PackedRows::bytes_for(PanelFormat format, int64_t rows, int64_t cols, int threads) {
  const int64_t padded = rows + kMostRowsPerPanel;
  const int64_t screen = has_screen(format) ? BaseScreen::bytes_for(padded, cols) : 0;
  return padded * packed_bytes(format, cols) + array_bytes<float>(3 * padded) + padded + screen +
         threads * scratch_bytes(format, cols);
}

bool PackedRows::fits(PanelFormat format) const {
  if (lacks_panels(format_) && format == PanelFormat::bf16) {
    return panel_shape(format_).rows_per_panel == shape_.rows_per_panel;  // of the screen, if there is one
  }
  const bool makes_panels = lacks_panels(format_) && holds_f32(format);
  const PanelShape shape = panel_shape(makes_panels ? format_ : format);
  const bool same = format == format_ || (holds_f32(format) && holds_f32(format_)) ||
                    (makes_panels && panel_shape(format).rows_per_panel == shape_.rows_per_panel);
  return same && shape.rows_per_panel == shape_.rows_per_panel && shape.signed_bytes == shape_.signed_bytes;
}

PanelBase PackedRows::panels() const {
  return {panels_.data(), terms_.as<float>(), norms_.data(), format_, cols(), panel_step(kind_), row_norms_.data()};
}

BytePanelBase PackedRows::byte_panels() const {
  return {panels_.data(), terms_.as<int32_t>(), format_, cols(), has_differences(kind_) ? 2 : 1};
}

void PackedRows::pack(const RowGather& rows, const PackOptions& options, ProgressMeter& meter,
                      const Resources& resources) {
  begin(rows);
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
  if (options.count_repeats && !resources.host_memory()->counts_only()) count_repeats(rows);
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
  has_repeats_ = false;
}

// Equal rows have equal norms: each is compared with the last row that had its place in a small table, where rows that
// were seen again stay. Some repeats are missed, which costs time only.
void PackedRows::count_repeats(const RowGather& rows) {
  if (holds_bytes(format_)) return;
  constexpr uint32_t kPlaceBits = 11;
  struct Seen {
    uint32_t norm = 0;
    uint32_t count = 0;  // of equal rows; 0: none was here
    int64_t row = 0;
  };
  std::array<Seen, 1 << kPlaceBits> table = {};
  const MatrixView& all = rows.collection();
  const auto bytes = static_cast<size_t>(all.cols() * size_of(all.dtype()));
  for (int64_t i = 0; i < rows_; ++i) {
    const uint32_t norm = bits_of_float(row_norms_[i]);
    Seen& seen = table[(norm * 0x9E3779B1u) >> (32 - kPlaceBits)];
    const bool equal = seen.count > 0 && seen.norm == norm &&
                       std::memcmp(all.row(rows.number(seen.row)), all.row(rows.number(i)), bytes) == 0;
    repeats_[i] = equal ? static_cast<uint8_t>(std::min<int64_t>(seen.count, kMostRepeats)) : uint8_t{0};
    has_repeats_ = has_repeats_ || equal;
    if (equal) {
      ++seen.count;
    } else if (seen.count <= 1) {
      seen = {norm, 1, i};
    }
  }
  std::fill(repeats_.data() + rows_, repeats_.data() + panel_count() * shape_.rows_per_panel,
            static_cast<uint8_t>(kMostRepeats));
}

void PackedRows::move_known(const MatrixView& rows, int64_t row, float* out) const {
  const float* values = out;
  if (rows.dtype() == DType::f32) {
    values = typed_row<float>(rows, row);
  } else {
    widen_row(rows, row, out);
  }
  if (!has_differences(kind_)) {
    move_vector(kind_, origin_, values, out);
    return;
  }
  move_floats(values, origin_.data(), cols(), scale_, out);
}

void PackedRows::copy_panel(const MatrixView& rows, int64_t panel, float* scratch, float* out) const {
  const int64_t width = shape_.rows_per_panel;
  const int64_t first = panel * width;
  const int64_t count = std::min(width, rows_ - first);
  if (packs_as_given(rows.dtype())) {
    return pack_units(typed_row<float>(rows, first), rows.row_stride(), count, cols(), width, out);
  }
  for (int64_t i = 0; i < count; ++i) move_known(rows, first + i, scratch + i * cols());
  pack_units(scratch, cols(), count, cols(), width, out);
}

void PackedRows::pack_known(const PackedRows& known, const MatrixView& rows, int64_t first, int64_t count,
                            ProgressMeter& meter, const Resources& resources) {
  begin(rows.slice(first, count));
  has_repeats_ = known.has_repeats_;
  const int64_t width = shape_.rows_per_panel;
  const int64_t bytes = packed_bytes(format_, cols());
  const int64_t scratch_bytes = PanelScratch::bytes_for(format_, cols(), width);
  const HostBuffer scratch(resources.threads() * scratch_bytes, "packing", resources);
  parallel_for(divide_up(panel_count(), kPanelsPerTask), meter, resources, [&](int64_t task, int slot) {
    const PanelScratch room(scratch.data() + slot * scratch_bytes, cols());
    const int64_t end = std::min((task + 1) * kPanelsPerTask, panel_count());
    for (int64_t panel = task * kPanelsPerTask; panel < end; ++panel) {
      const int64_t at = panel * width;
      const int64_t some = std::min(width, count - at);
      float* const terms = terms_.as<float>() + at;
      float* const norms = row_norms_.data() + at;
      std::fill(std::copy_n(known.terms_.as<float>() + first + at, some, terms), terms + width, kInfinity);
      std::fill(std::copy_n(known.row_norms_.data() + first + at, some, norms), norms + width, 0.0f);
      norms_[panel] = *std::max_element(norms, norms + width);
      if (has_repeats_) {
        uint8_t* const repeats = repeats_.data() + at;
        std::fill(std::copy_n(known.repeats_.data() + first + at, some, repeats), repeats + width,
                  static_cast<uint8_t>(kMostRepeats));
      }
      for (int64_t i = 0; i < some; ++i) {
        const int64_t row = first + at + i;
        const float* values = room.vector;
        if (known.packs_as_given(rows.dtype())) {
          values = typed_row<float>(rows, row);
        } else {
          known.move_known(rows, row, room.vector);
        }
        encode_floats(format_, values, cols(), 1.0f, room.packed + i * bytes / 4);
      }
      pack_panel(format_, cols(), room.packed, some, width, panels_.data() + at * bytes);
    }
  });
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
    const double squared = scale_moved(move_vector(kind_, origin_, row, row), scale_, row, cols());
    // Else it is the difference that overflows.
    if (!std::isfinite(squared)) finite &= row_is_finite(rows.collection(), number);
    terms[i] = has_differences(kind_) ? static_cast<float>(squared) : 0.0f;
    const float norm = squared < kLargestSquaredNorm ? static_cast<float>(std::sqrt(squared)) : kInfinity;
    row_norms_[first + i] = norm;
    largest = std::max(largest, norm);
    if (has_screen(format_)) screen_.put(panel, i, row);
    if (bytes > 0) encode_floats(format_, row, cols(), 1.0f, room.packed + i * bytes / 4);
  }
  std::fill(terms + count, terms + width, kInfinity);
  std::fill(row_norms_.data() + first + count, row_norms_.data() + first + width, 0.0f);
  norms_[panel] = largest;
  if (bytes > 0) pack_panel(format_, cols(), room.packed, count, width, panels_.data() + first * bytes);
  return finite;
}

}  // namespace kith
