#include "cluster/centre_panels.hpp"

#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kFloat = sizeof(float);
// With fewer columns the sums are no longer what takes the time.
constexpr int64_t kFewestByteColumns = 16;

int64_t padded(int64_t clusters) {
  return (clusters + kMostRowsPerPanel - 1) / kMostRowsPerPanel * kMostRowsPerPanel + kMostRowsPerPanel;
}

}  // namespace

bool CentrePanels::takes_bytes(int64_t cols) {
  return cols >= kFewestByteColumns && cols <= kMostRoundedColumns && has_rounded_product();
}

int64_t CentrePanels::bytes_for(int64_t clusters, int64_t cols) {
  const int64_t rows = padded(clusters);
  const int64_t packed = takes_bytes(cols) ? BaseScreen::bytes_for(rows, cols) : rows * cols * kFloat;
  return packed + (2 * rows + kMostRowsPerPanel * cols) * kFloat;
}

CentrePanels::CentrePanels(KeyKind kind, int64_t clusters, int64_t cols, const Resources& resources)
    : kind_(kind),
      bytes_(takes_bytes(cols)),
      cols_(cols),
      width_((bytes_ ? byte_panel_shape() : f32_panel_shape()).rows_per_panel) {
  const int64_t rows = (clusters + width_ - 1) / width_ * width_;
  if (bytes_) {
    screen_ = BaseScreen(rows, cols, resources);
  } else {
    values_ = HostBuffer(rows * cols * kFloat, "the packed centres", resources);
  }
  terms_ = HostBuffer(rows * kFloat, "the packed centres", resources);
  norms_ = HostBuffer(rows * kFloat, "the packed centres", resources);
  scratch_ = HostBuffer(kMostRowsPerPanel * cols * kFloat, "packing the centres", resources);
}

void CentrePanels::pack(const MatrixView& centres, const std::vector<float>& origin) {
  centres_ = centres;
  origin_ = origin;
  for (int64_t panel = 0; panel < panel_count(); ++panel) pack_one(panel);
}

void CentrePanels::pack_one(int64_t panel) {
  const int64_t first = panel * width_;
  const int64_t count = std::min(width_, this->count() - first);
  float* const scratch = scratch_.as<float>();
  float* const terms = terms_.as<float>() + first;
  float largest = 0;
  if (bytes_) screen_.clear_panel(panel, count);
  for (int64_t i = 0; i < count; ++i) {
    float* const row = scratch + i * cols_;
    widen_row(centres_, first + i, row);
    if (has_differences(kind_)) {
      for (int64_t c = 0; c < cols_; ++c) row[c] -= origin_[static_cast<size_t>(c)];
    }
    const double squared = canonical_squared_norm_cpu(row, cols_);
    terms[i] = has_differences(kind_) ? static_cast<float>(squared) : 0.0f;
    const float norm = squared < kLargestSquaredNorm ? static_cast<float>(std::sqrt(squared)) : kInfinity;
    largest = std::max(largest, norm);
    if (bytes_) screen_.put(panel, i, row);
  }
  std::fill(terms + count, terms + width_, kInfinity);
  norms_.as<float>()[panel] = largest;
  if (bytes_) return;
  pack_units(scratch_.as<uint32_t>(), cols_, count, cols_, width_, values_.as<uint32_t>() + first * cols_);
}

}  // namespace kith
