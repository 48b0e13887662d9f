#include "exact/query_set.hpp"

#include "exact/finite_check.hpp"
#include "exact/packed_base.hpp"
#include "kernels/distance/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr int64_t kWidestPanel = 8;  // queries

int64_t padded(int64_t queries) { return (queries + kWidestPanel - 1) / kWidestPanel * kWidestPanel + kWidestPanel; }

}  // namespace

int64_t QuerySet::bytes_for(int64_t queries, int64_t cols, bool packed, int threads) {
  const auto floats = static_cast<int64_t>(sizeof(float)) * cols;
  const int64_t plain = queries * (floats + static_cast<int64_t>(sizeof(Facts)));
  if (!packed) return plain;
  return plain + padded(queries) * (floats + static_cast<int64_t>(sizeof(ErrorBound))) +
         threads * kWidestPanel * floats;
}

QuerySet::QuerySet(KeyKind kind, int64_t capacity, int64_t cols, bool packed, const Resources& resources)
    : kind_(kind), cols_(cols), width_(panel_shape().queries_per_panel) {
  const auto floats = static_cast<int64_t>(sizeof(float)) * cols;
  rows_ = HostBuffer(capacity * floats, "the queries", resources);
  facts_ = HostBuffer(capacity * static_cast<int64_t>(sizeof(Facts)), "the queries' norms", resources);
  if (!packed) return;
  panels_ = HostBuffer(padded(capacity) * floats, "the packed queries", resources);
  padded_ = padded(capacity);
  bounds_ = HostBuffer(padded_ * static_cast<int64_t>(sizeof(ErrorBound)), "the queries' error bounds", resources);
}

void QuerySet::load(const MatrixView& queries, bool check_finite, int64_t first_query) {
  size_ = queries.rows();
  for (int64_t i = 0; i < size_; ++i) {
    float* out = rows_.as<float>() + i * cols_;
    widen_row(queries, i, out);
    const double squared = canonical_squared_norm_cpu(out, cols_);
    if (check_finite && !std::isfinite(squared)) throw_not_finite("query", first_query + i);
    facts()[i] = {squared, canonical_inverse_norm(squared), 0.0f};
  }
}

void QuerySet::pack(const std::vector<float>& centre, ProgressMeter& meter, const Resources& resources) {
  const int64_t floats = width_ * cols_;
  const HostBuffer scratch(resources.threads() * floats * static_cast<int64_t>(sizeof(float)), "packing", resources);
  parallel_for((size_ + width_ - 1) / width_, meter, resources,
               [&](int64_t panel, int slot) { pack_one(panel, centre, scratch.as<float>() + slot * floats); });
}

PanelQueries QuerySet::panels(int64_t first, int64_t count, float* limits) const {
  const float* const coefficients = bounds_.as<float>() + first;
  return {panels_.as<float>() + first * cols_, count, limits, coefficients, coefficients + padded_,
          coefficients + 2 * padded_};
}

void QuerySet::pack_one(int64_t panel, const std::vector<float>& centre, float* scratch) {
  const int64_t first = panel * width_;
  const int64_t count = std::min(width_, size_ - first);
  std::vector<ErrorBound> bounds(static_cast<size_t>(width_));
  for (int64_t i = 0; i < count; ++i) {
    Facts& facts = this->facts()[first + i];
    const float* from = row(first + i);
    float* to = scratch + i * cols_;
    ErrorBound& bound = bounds[static_cast<size_t>(i)];
    double squared = facts.squared_norm;
    switch (kind_) {
      case KeyKind::l2:
      case KeyKind::squared_l2:
        for (int64_t c = 0; c < cols_; ++c) to[c] = from[c] - centre[static_cast<size_t>(c)];
        squared = canonical_squared_norm_cpu(to, cols_);
        facts.offset = static_cast<float>(squared);
        bound = squared_l2_product_bound(std::sqrt(squared), cols_);
        break;
      case KeyKind::inner_product:
        std::copy(from, from + cols_, to);
        facts.offset = 0.0f;
        bound = inner_product_bound(std::sqrt(squared), cols_);
        break;
      case KeyKind::cosine:
        for (int64_t c = 0; c < cols_; ++c) to[c] = static_cast<float>(from[c] * facts.inverse_norm);
        if (std::isfinite(squared)) squared = 1;
        facts.offset = 1.0f;
        bound = inner_product_bound(1.0, cols_);
        break;
      default: break;  // no product gives the others
    }
    if (!(squared < kLargestSquaredNorm)) bound.constant = std::numeric_limits<float>::infinity();
  }
  float* const coefficients = bounds_.as<float>() + first;
  for (int64_t i = 0; i < width_; ++i) {
    const ErrorBound& bound = bounds[static_cast<size_t>(i)];
    coefficients[i] = bound.constant;
    coefficients[padded_ + i] = bound.linear;
    coefficients[2 * padded_ + i] = bound.quadratic;
  }
  const float scale = has_differences(kind_) ? -2.0f : -1.0f;
  pack_panel(scratch, count, cols_, width_, scale, panels_.as<float>() + first * cols_);
}

}  // namespace kith
