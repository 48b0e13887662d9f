#include "kernels/panels/packed_queries.hpp"

#include "core/divide.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/panels/panel_format.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr int64_t kCoefficients = 5;

// Whole panels of any width up to the widest.
int64_t padded(int64_t queries) { return round_up(queries, kMostQueriesPerPanel) + kMostQueriesPerPanel; }

bool has_bounds(PanelFormat format) { return !holds_bytes(format) && format != PanelFormat::rounded; }

// Errors of one query's values, and of those that tiles look at first.
struct QueryBounds {
  ErrorBound all;
  ErrorBound wide;
};

QueryBounds bounds_of(KeyKind kind, PanelFormat format, double squared, int64_t cols) {
  const bool differences = has_differences(kind);
  const double norm = std::sqrt(squared);
  QueryBounds bounds;
  if (format == PanelFormat::bf16) {
    bounds.all = tile_product_bound(differences, norm, cols, kBothPartsError);
    bounds.wide = tile_product_bound(differences, norm, cols, kHighPartsError);
  } else if (is_product(kind)) {
    bounds.all = differences ? squared_l2_product_bound(norm, cols) : inner_product_bound(norm, cols);
  } else {  // relative to the value, but for what underflows
    bounds.all.constant = static_cast<float>(underflow_error(cols));
  }
  if (!(squared < kLargestSquaredNorm)) {
    bounds.all.constant = bounds.wide.constant = std::numeric_limits<float>::infinity();
  }
  return bounds;
}

}  // namespace

PackedQueries::PackedQueries(KeyKind kind, PanelFormat format, int64_t capacity, int64_t cols,
                             const Resources& resources)
    : kind_(kind),
      format_(format),
      shape_(panel_shape(format)),
      cols_(cols),
      padded_(padded(capacity)),
      panels_(padded_ * packed_bytes(format, cols), "the packed queries", resources),
      offsets_(array_bytes<float>(padded_), "the packed queries", resources) {
  if (has_bounds(format)) bounds_ = HostArray<float>(padded_ * kCoefficients, "the queries' error bounds", resources);
  if (has_screen(format)) screen_ = QueryScreen(padded_, cols, resources);
}

int64_t PackedQueries::bytes_for(PanelFormat format, int64_t queries, int64_t cols) {
  const int64_t count = padded(queries);
  const int64_t floats = 1 + (has_bounds(format) ? kCoefficients : 0);
  return count * packed_bytes(format, cols) + array_bytes<float>(count * floats) +
         (has_screen(format) ? QueryScreen::bytes_for(count, cols) : 0);
}

int64_t PackedQueries::scratch_bytes(PanelFormat format, int64_t cols) {
  return PanelScratch::bytes_for(format, cols, kMostQueriesPerPanel);
}

PanelQueries PackedQueries::panels(int64_t first, int64_t count, float* limits) const {
  const float* const coefficients = bounds_.data() + first;
  return {panels_.data() + first * packed_bytes(format_, cols_),
          count,
          limits,
          coefficients,
          coefficients + padded_,
          coefficients + 2 * padded_,
          coefficients + 3 * padded_,
          coefficients + 4 * padded_};
}

BytePanelQueries PackedQueries::byte_panels(int64_t first, int64_t count, int32_t* limits) const {
  return {panels_.data() + first * packed_bytes(format_, cols_), count, limits};
}

void PackedQueries::pack(const float* queries, int64_t count, std::span<const float> origin, ProgressMeter& meter,
                         const Resources& resources) {
  const int64_t bytes = scratch_bytes(format_, cols_);
  const int64_t width = panel_width();
  const HostArray<std::byte> scratch(resources.threads() * bytes, "packing", resources);
  parallel_for(divide_up(count, width), meter, resources, [&](int64_t panel, int slot) {
    const int64_t first = panel * width;
    pack_panel(panel, queries + first * cols_, std::min(width, count - first), origin, scratch.data() + slot * bytes);
  });
}

void PackedQueries::pack_panel(int64_t panel, const float* queries, int64_t count, std::span<const float> origin,
                               std::byte* scratch) {
  const int64_t first = panel * panel_width();
  if (holds_bytes(format_)) return pack_bytes(first, queries, count, scratch);
  pack_floats(first, queries, count, origin, scratch);
}

void PackedQueries::pack_bytes(int64_t first, const float* queries, int64_t count, std::byte* scratch) {
  const int64_t bytes = packed_bytes(format_, cols_);
  const PanelScratch room(scratch, cols_);
  for (int64_t i = 0; i < count; ++i) {
    uint8_t* const to = room.packed_bytes + i * bytes;
    const float* const query = queries + i * cols_;
    // Once as the bytes they are, for the sums, and once as they are multiplied.
    encode_byte_query(format_, PanelShape(), query, cols_, bytes, to);
    offsets_.as<int32_t>()[first + i] =
        format_ == PanelFormat::bits ? 0 : byte_query_offset(format_, shape_, kind_, byte_sums(format_, to, cols_));
    if (shape_.signed_bytes) encode_byte_query(format_, shape_, query, cols_, bytes, to);
  }
  place(first, count, room.packed);
}

void PackedQueries::pack_floats(int64_t first, const float* queries, int64_t count, std::span<const float> origin,
                                std::byte* scratch) {
  const bool differences = has_differences(kind_);
  const float scale = !is_product(kind_) ? 1.0f : differences ? -2.0f : -1.0f;
  const int64_t units = packed_bytes(format_, cols_) / 4;
  const PanelScratch room(scratch, cols_);
  float* const moved = room.vector;
  for (int64_t i = 0; i < panel_width(); ++i) {
    QueryBounds bounds;
    if (i < count) {
      const double squared = scale_moved(move_vector(kind_, origin, queries + i * cols_, moved), scale_, moved, cols_);
      offsets_.as<float>()[first + i] = differences                ? static_cast<float>(squared)
                                        : kind_ == KeyKind::cosine ? 1.0f
                                                                   : 0.0f;
      if (has_screen(format_)) screen_.put(first + i, moved, squared, differences);
      if (has_bounds(format_)) {
        bounds = bounds_of(kind_, format_, squared, cols_);
        encode_floats(format_, moved, cols_, scale, room.packed + i * units);
      }
    } else if (has_screen(format_)) {
      screen_.clear(first + i);
    }
    if (!has_bounds(format_)) continue;
    float* const coefficients = bounds_.data() + first + i;
    coefficients[0] = bounds.all.constant;
    coefficients[padded_] = bounds.all.linear;
    coefficients[2 * padded_] = bounds.all.quadratic;
    coefficients[3 * padded_] = bounds.wide.constant;
    coefficients[4 * padded_] = bounds.wide.linear;
  }
  if (has_bounds(format_)) place(first, count, room.packed);
}

void PackedQueries::place(int64_t first, int64_t count, const uint32_t* vectors) {
  const int64_t width = panel_width();
  const int64_t bytes = packed_bytes(format_, cols_);
  if (!shape_.query_rows) {
    return kith::pack_panel(format_, cols_, vectors, count, width, panels_.data() + first * bytes);
  }
  const int64_t units = units_per_part(format_, cols_);
  uint32_t* out = panels_.as<uint32_t>() + first * (bytes / 4);
  for (int64_t part = 0; part < parts_of(format_); ++part, out += width * units) {
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(vectors + (i * parts_of(format_) + part) * units, units, out + i * units);
    }
    std::fill(out + count * units, out + width * units, 0u);
  }
}

}  // namespace kith
