#include "cluster/row_panels.hpp"

#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/product/panel_packing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kArrays = 7;

int64_t padded(int64_t rows) {
  return (rows + RowPanels::kAlignment - 1) / RowPanels::kAlignment * RowPanels::kAlignment;
}

int64_t bytes_packed(int64_t rows, int64_t cols) {
  return padded(rows) * (CentrePanels::takes_bytes(cols) ? rounded_words(cols) * 4 : cols * kFloat);
}

}  // namespace

int64_t RowPanels::bytes_for(int64_t capacity, int64_t cols) {
  return bytes_packed(capacity, cols) + kAlignment * cols * kFloat + padded(capacity) * kArrays * kFloat;
}

RowPanels::RowPanels(KeyKind kind, int64_t capacity, int64_t cols, const Resources& resources)
    : kind_(kind),
      bytes_(CentrePanels::takes_bytes(cols)),
      cols_(cols),
      width_((bytes_ ? rounded_panel_shape() : f32_panel_shape()).queries_per_panel),
      packed_(bytes_packed(capacity, cols), "the packed rows", resources),
      moved_(kAlignment * cols * kFloat, "packing rows", resources),
      arrays_(padded(capacity) * kArrays * kFloat, "the packed rows", resources) {
  float* at = arrays_.as<float>();
  for (float** array : {&limits_, &offsets_, &factors_, &constant_, &linear_, &quadratic_, &tilt_}) {
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
  const float scale = differences ? -2.0f : -1.0f;
  const int64_t row_bytes = rounded_words(cols_) * 4;
  int8_t* const bytes = packed_.as<int8_t>() + first * row_bytes;
  if (bytes_ && count < width_) std::fill_n(bytes, width_ * row_bytes, int8_t{0});
  for (int64_t i = 0; i < width_; ++i) {
    const int64_t at = first + i;
    if (i >= count) {  // fills the panel up: accepts nothing
      limits_[at] = -kInfinity;
      offsets_[at] = factors_[at] = constant_[at] = linear_[at] = quadratic_[at] = tilt_[at] = 0;
      continue;
    }
    const float* const row = rows + i * cols_;
    float* const moved = moved_.as<float>() + i * cols_;
    for (int64_t c = 0; c < cols_; ++c) moved[c] = differences ? row[c] - origin[static_cast<size_t>(c)] : row[c];
    const double squared = canonical_squared_norm_cpu(moved, cols_);
    const double norm = std::sqrt(squared);
    // A product of bytes has fewer roundings than one of floats; eight more stand for its scales and conversions.
    const int64_t terms = cols_ + (bytes_ ? 8 : 0);
    ErrorBound bound = differences ? squared_l2_product_bound(norm, terms) : inner_product_bound(norm, terms);
    if (!(squared < kLargestSquaredNorm)) bound.constant = kInfinity;
    factors_[at] = tilt_[at] = 0;
    if (bytes_) {
      const RoundedVector rounded = round_query(moved, cols_, width_, bytes + i * 4);
      const float twice = (differences ? 2.0f : 1.0f) * (1 + 0x1p-18f);
      factors_[at] = scale * rounded.scale;
      bound.linear += twice * rounded.residual;
      tilt_[at] = twice * (static_cast<float>(norm) + rounded.residual);
    }
    limits_[at] = kInfinity;
    offsets_[at] = differences ? static_cast<float>(squared) : 0.0f;
    constant_[at] = bound.constant;
    linear_[at] = bound.linear;
    quadratic_[at] = bound.quadratic;
  }
  if (bytes_) return;
  for (int64_t v = 0; v < count * cols_; ++v) moved_.as<float>()[v] *= scale;
  pack_units(moved_.as<uint32_t>(), cols_, count, cols_, width_, packed_.as<uint32_t>() + first * cols_);
}

void RowPanels::scan(const CentrePanels& centres, int64_t first, int64_t count, PanelHits& hits) const {
  if (bytes_) {
    const RoundedQueries queries{packed_.as<int8_t>() + first * rounded_words(cols_) * 4,
                                 count,
                                 limits_ + first,
                                 factors_ + first,
                                 constant_ + first,
                                 linear_ + first,
                                 quadratic_ + first,
                                 tilt_ + first};
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
  const RoundedQueries queries{nullptr, 0, nullptr, nullptr, constant_, linear_, quadratic_, tilt_};
  const RoundedBase base = centres.rounded_panels();
  return queries.bound(row, base.norms[panel], base.residuals[panel]);
}

}  // namespace kith
