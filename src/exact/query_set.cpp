#include "exact/query_set.hpp"

#include "exact/packed_base.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "rows/finite_check.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr int64_t kWidest = kMostQueriesPerPanel;
constexpr int64_t kCoefficients = 5;
constexpr int64_t kFloat = sizeof(float);

int64_t padded(int64_t queries) { return (queries + kWidest - 1) / kWidest * kWidest + kWidest; }
// For one thread.
int64_t scratch_bytes(PanelFormat format, int64_t cols) {
  return (cols * kFloat + 63) / 64 * 64 + kWidest * packed_bytes(format, cols);
}

}  // namespace

int64_t QuerySet::bytes_for(int64_t queries, int64_t cols, std::optional<PanelFormat> format, int threads) {
  const int64_t plain = queries * (kFloat * cols + static_cast<int64_t>(sizeof(Facts)));
  if (!format) return plain;
  const int64_t screen = *format == PanelFormat::screened ? QueryScreen::bytes_for(padded(queries), cols) : 0;
  return plain + padded(queries) * (packed_bytes(*format, cols) + kCoefficients * kFloat) + screen +
         threads * scratch_bytes(*format, cols);
}

QuerySet::QuerySet(KeyKind kind, int64_t capacity, int64_t cols, std::optional<PanelFormat> format,
                   const Resources& resources)
    : kind_(kind), cols_(cols) {
  rows_ = HostBuffer(capacity * kFloat * cols, "the queries", resources);
  facts_ = HostBuffer(capacity * static_cast<int64_t>(sizeof(Facts)), "the queries' norms", resources);
  if (!format) return;
  format_ = *format;
  shape_ = panel_shape(format_);
  padded_ = padded(capacity);
  panels_ = HostBuffer(padded_ * packed_bytes(format_, cols), "the packed queries", resources);
  bounds_ = HostBuffer(padded_ * kCoefficients * kFloat, "the queries' error bounds", resources);
  if (format_ == PanelFormat::screened) screen_ = QueryScreen(padded_, cols, resources);
}

void QuerySet::load(const MatrixView& queries, bool check_finite, int64_t first_query) {
  size_ = queries.rows();
  for (int64_t i = 0; i < size_; ++i) {
    float* out = rows_.as<float>() + i * cols_;
    widen_row(queries, i, out);
    const double squared = canonical_squared_norm_cpu(out, cols_);
    if (check_finite && !std::isfinite(squared)) throw_not_finite("query", first_query + i);
    facts()[i] = {squared, canonical_inverse_norm(squared), 0.0f, 0};
  }
}

void QuerySet::pack(const std::vector<float>& centre, ProgressMeter& meter, const Resources& resources) {
  const int64_t bytes = scratch_bytes(format_, cols_);
  const HostBuffer scratch(resources.threads() * bytes, "packing", resources);
  const int64_t width = shape_.queries_per_panel;
  parallel_for((size_ + width - 1) / width, meter, resources, [&](int64_t panel, int slot) {
    std::byte* const mine = scratch.data() + slot * bytes;
    auto* const vectors = reinterpret_cast<uint32_t*>(mine + (cols_ * kFloat + 63) / 64 * 64);
    if (holds_bytes(format_)) {
      pack_bytes(panel, vectors);
    } else {
      pack_floats(panel, centre, reinterpret_cast<float*>(mine), vectors);
    }
  });
}

PanelQueries QuerySet::panels(int64_t first, int64_t count, float* limits) const {
  const float* const coefficients = bounds_.as<float>() + first;
  return {panels_.data() + first * packed_bytes(format_, cols_),
          count,
          limits,
          coefficients,
          coefficients + padded_,
          coefficients + 2 * padded_,
          coefficients + 3 * padded_,
          coefficients + 4 * padded_};
}

BytePanelQueries QuerySet::byte_panels(int64_t first, int64_t count, int32_t* limits) const {
  return {panels_.data() + first * packed_bytes(format_, cols_), count, limits};
}

void QuerySet::pack_bytes(int64_t panel, uint32_t* scratch) {
  const int64_t width = shape_.queries_per_panel;
  const int64_t first = panel * width;
  const int64_t count = std::min(width, size_ - first);
  const int64_t bytes = packed_bytes(format_, cols_);
  for (int64_t i = 0; i < count; ++i) {
    auto* const to = reinterpret_cast<uint8_t*>(scratch) + i * bytes;
    // Once as the bytes they are, for the sums, and once as they are multiplied.
    encode_byte_query(format_, PanelShape(), row(first + i), cols_, bytes, to);
    facts()[first + i].byte_offset =
        format_ == PanelFormat::bits ? 0 : byte_query_offset(format_, shape_, kind_, byte_sums(format_, to, cols_));
    if (shape_.signed_bytes) encode_byte_query(format_, shape_, row(first + i), cols_, bytes, to);
  }
  place(panel, count, scratch);
}

void QuerySet::pack_floats(int64_t panel, const std::vector<float>& centre, float* moved, uint32_t* scratch) {
  const int64_t width = shape_.queries_per_panel;
  const int64_t first = panel * width;
  const int64_t count = std::min(width, size_ - first);
  const bool tiles = format_ == PanelFormat::bf16;
  const float scale = !is_product(kind_) ? 1.0f : has_differences(kind_) ? -2.0f : -1.0f;
  float* const coefficients = bounds_.as<float>() + first;
  for (int64_t i = 0; i < width; ++i) {
    ErrorBound bound;
    ErrorBound wide;
    if (i < count) {
      Facts& facts = this->facts()[first + i];
      const float* from = row(first + i);
      double squared = facts.squared_norm;
      switch (kind_) {
        case KeyKind::l2:
        case KeyKind::squared_l2:
          for (int64_t c = 0; c < cols_; ++c) moved[c] = from[c] - centre[static_cast<size_t>(c)];
          squared = canonical_squared_norm_cpu(moved, cols_);
          facts.offset = static_cast<float>(squared);
          break;
        case KeyKind::inner_product:
          std::copy(from, from + cols_, moved);
          facts.offset = 0.0f;
          break;
        case KeyKind::cosine:
          for (int64_t c = 0; c < cols_; ++c) moved[c] = static_cast<float>(from[c] * facts.inverse_norm);
          if (std::isfinite(squared)) squared = 1;
          facts.offset = 1.0f;
          break;
        default:  // the values themselves are compared
          std::copy(from, from + cols_, moved);
          facts.offset = 0.0f;
          break;
      }
      const double norm = std::sqrt(squared);
      if (tiles) {
        bound = tile_product_bound(has_differences(kind_), norm, cols_, kBothPartsError);
        wide = tile_product_bound(has_differences(kind_), norm, cols_, kHighPartsError);
      } else if (is_product(kind_)) {
        bound = has_differences(kind_) ? squared_l2_product_bound(norm, cols_) : inner_product_bound(norm, cols_);
      } else {  // relative to the value, but for what underflows
        bound.constant = static_cast<float>(underflow_error(cols_));
      }
      if (!(squared < kLargestSquaredNorm)) bound.constant = wide.constant = std::numeric_limits<float>::infinity();
      if (format_ == PanelFormat::screened) screen_.put(first + i, moved, squared, has_differences(kind_));
      encode_floats(format_, moved, cols_, scale, scratch + i * packed_bytes(format_, cols_) / kFloat);
    }
    if (format_ == PanelFormat::screened && i >= count) screen_.clear(first + i);
    coefficients[i] = bound.constant;
    coefficients[padded_ + i] = bound.linear;
    coefficients[2 * padded_ + i] = bound.quadratic;
    coefficients[3 * padded_ + i] = wide.constant;
    coefficients[4 * padded_ + i] = wide.linear;
  }
  place(panel, count, scratch);
}

void QuerySet::place(int64_t panel, int64_t count, const uint32_t* scratch) {
  const int64_t width = shape_.queries_per_panel;
  std::byte* const to = panels_.data() + panel * width * packed_bytes(format_, cols_);
  if (!shape_.query_rows) return pack_panel(format_, cols_, scratch, count, width, to);
  const int64_t units = units_per_part(format_, cols_);
  auto* out = reinterpret_cast<uint32_t*>(to);
  for (int64_t part = 0; part < parts_of(format_); ++part, out += width * units) {
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(scratch + (i * parts_of(format_) + part) * units, units, out + i * units);
    }
    std::fill(out + count * units, out + width * units, 0u);
  }
}

}  // namespace kith
