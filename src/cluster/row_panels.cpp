#include "cluster/row_panels.hpp"

#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/panels/panel_packing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kArrays = 5;

int64_t padded(int64_t rows) {
  return (rows + RowPanels::kAlignment - 1) / RowPanels::kAlignment * RowPanels::kAlignment;
}

int64_t bytes_packed(int64_t rows, int64_t cols) {
  return CentrePanels::takes_bytes(cols) ? QueryScreen::bytes_for(padded(rows), cols) : padded(rows) * cols * kFloat;
}

}  // namespace

int64_t RowPanels::bytes_for(int64_t capacity, int64_t cols) {
  return bytes_packed(capacity, cols) + kAlignment * cols * kFloat + padded(capacity) * kArrays * kFloat;
}

RowPanels::RowPanels(KeyKind kind, int64_t capacity, int64_t cols, const Resources& resources)
    : kind_(kind),
      bytes_(CentrePanels::takes_bytes(cols)),
      cols_(cols),
      width_((bytes_ ? byte_panel_shape() : f32_panel_shape()).queries_per_panel),
      moved_(kAlignment * cols * kFloat, "packing rows", resources),
      arrays_(padded(capacity) * kArrays * kFloat, "the packed rows", resources) {
  if (bytes_) {
    screen_ = QueryScreen(padded(capacity), cols, resources);
  } else {
    packed_ = HostBuffer(padded(capacity) * cols * kFloat, "the packed rows", resources);
  }
  float* at = arrays_.as<float>();
  for (float** array : {&limits_, &offsets_, &constant_, &linear_, &quadratic_}) {
    *array = at;
    at += padded(capacity);
  }
}

void RowPanels::pack(const float* rows, int64_t first, int64_t count, const std::vector<float>& origin) {
  for (int64_t done = 0; done < count; done += width_) {
    pack_panel_of(rows + done * cols_, first + done, std::min(width_, count - done), origin);
  }
}

void RowPanels::pack_panel_of(const float* rows, int64_t first, int64_t count, const std::vector<float>& origin) {
  const bool differences = has_differences(kind_);
  for (int64_t i = 0; i < width_; ++i) {
    const int64_t at = first + i;
    if (i >= count) {  // fills the panel up: accepts nothing
      limits_[at] = -kInfinity;
      offsets_[at] = constant_[at] = linear_[at] = quadratic_[at] = 0;
      if (bytes_) screen_.clear(at);
      continue;
    }
    const float* const row = rows + i * cols_;
    float* const moved = moved_.as<float>() + i * cols_;
    for (int64_t c = 0; c < cols_; ++c) moved[c] = differences ? row[c] - origin[static_cast<size_t>(c)] : row[c];
    const double squared = canonical_squared_norm_cpu(moved, cols_);
    limits_[at] = kInfinity;
    offsets_[at] = differences ? static_cast<float>(squared) : 0.0f;
    if (bytes_) {
      screen_.put(at, moved, squared, differences);
      continue;
    }
    const double norm = std::sqrt(squared);
    ErrorBound bound = differences ? squared_l2_product_bound(norm, cols_) : inner_product_bound(norm, cols_);
    if (!(squared < kLargestSquaredNorm)) bound.constant = kInfinity;
    constant_[at] = bound.constant;
    linear_[at] = bound.linear;
    quadratic_[at] = bound.quadratic;
  }
  if (bytes_) return;
  const float scale = differences ? -2.0f : -1.0f;
  for (int64_t v = 0; v < count * cols_; ++v) moved_.as<float>()[v] *= scale;
  pack_units(moved_.as<uint32_t>(), cols_, count, cols_, width_, packed_.as<uint32_t>() + first * cols_);
}

void RowPanels::scan(const CentrePanels& centres, int64_t first, int64_t count, PanelHits& hits) const {
  if (bytes_) {
    const RoundedQueries queries = screen_.panels(first, count, limits_ + first);
    scan_rounded_panels(queries, centres.rounded_panels(), 0, centres.panel_count(), hits);
  } else {
    const PanelQueries queries{packed_.as<float>() + first * cols_,
                               count,
                               limits_ + first,
                               constant_ + first,
                               linear_ + first,
                               quadratic_ + first};
    scan_panels(queries, centres.panels(), 0, centres.panel_count(), hits);
  }
}

float RowPanels::bound(int64_t row, const CentrePanels& centres, int64_t panel) const {
  if (!bytes_) return ErrorBound{constant_[row], linear_[row], quadratic_[row]}.at(centres.panels().norms[panel]);
  const RoundedBase base = centres.rounded_panels();
  return screen_.panels(0, 0, nullptr).bound(row, base.norms[panel], base.residuals[panel]);
}

}  // namespace kith
