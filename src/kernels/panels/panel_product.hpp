// A blocked matrix product of floats that never writes its result: each tile's values are compared, in registers, with
// a threshold for each query, and only those at or below it are handed out.
//
// Rows of the base and queries are packed into panels (panel_format.hpp). A tile is one panel of each, its sums all in
// registers; how large they are depends on the instruction set. The last panels are filled up with zeros.
//
//   value(q, x) = term(x) + q' x'     with q', x' as packed: the caller scales the queries by -2 or -1
//
// The sums start from the terms, so adding them costs nothing. In place of products the same tiles can add up absolute
// differences, chi-square terms, or take the largest difference.
//
// Cost: 2 flops for each query, row and column; n cols floats for the packed base.
#pragma once

#include "kernels/distance/error_bound.hpp"
#include "kernels/panels/panel_format.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// The panels' shape for f32 and the instruction set in use.
PanelShape f32_panel_shape();

// What one column adds to a value.
enum class PanelStep : uint8_t {
  product,     // q x
  l1,          // |q - x|
  linf,        // the larger of the value and |q - x|
  chi_square,  // (q - x)^2 / (q + x), or nothing where q + x = 0
};

// Relative error of a term of chi_square: RCPPS is within 1.5 2^-12, AVX-512's VRCP14PS within 2^-14.
inline constexpr float kReciprocalError = 0x1p-11f;

// What a value of terms that are no products may err by, relative to it; what underflows comes on top
// (underflow_error).
inline float relative_error(KeyKind kind, int64_t cols) {
  if (is_product(kind)) return 0;
  return direct_error(cols) + (kind == KeyKind::chi_square ? kReciprocalError : 0.0f);
}

// The packed base that a scan passes over.
struct PanelBase {
  const void* panels = nullptr;  // PanelFormat f32 or bf16
  const float* terms = nullptr;  // one for each row, +inf for those that only fill up
  const float* norms = nullptr;  // the largest norm in each panel
  PanelFormat format = PanelFormat::f32;
  int64_t cols = 0;
  PanelStep step = PanelStep::product;  // bf16 panels can be multiplied only
  const float* row_norms = nullptr;     // one for each row, where they are kept: sharper bounds for what passes
  int64_t ring = 0;  // f32 alone: so many panels lie there at a time, panel p at p % ring (panel_ring.hpp); 0: all do

  int64_t place(int64_t panel) const { return ring == 0 ? panel : panel % ring; }
};

// The packed queries of one scan, with what each accepts: value <= limit + bound(panel's norm).
struct PanelQueries {
  const void* panels = nullptr;
  int64_t count = 0;
  float* limits = nullptr;  // on_hit may lower them
  // The bounds' coefficients (ErrorBound). These and the limits are padded to whole panels.
  const float* constant = nullptr;
  const float* linear = nullptr;
  const float* quadratic = nullptr;
  // Tiles look at the parts of bf16 that matter most first, which is within wider bounds.
  const float* wide_constant = nullptr;
  const float* wide_linear = nullptr;

  ErrorBound bound(int64_t query) const { return {constant[query], linear[query], quadratic[query]}; }
};

// The places of values that are not above their limits, a bit for each of at most 64. A NaN is above none. Without
// branches, by vectors of four and more: panels are whole ones.
inline uint64_t places_within(const float* values, const float* limits, int64_t count) {
  constexpr int64_t kHalf = 32;
  uint64_t places = 0;
  for (int64_t first = 0; first < count; first += kHalf) {
    const int64_t some = std::min(kHalf, count - first);
    uint32_t half = 0;
    for (int64_t i = 0; i < some; ++i) half |= values[first + i] > limits[first + i] ? 0u : 1u << i;
    places |= uint64_t{half} << first;
  }
  return places;
}

// Called for a query and a panel in which some value passed; values has rows_per_panel entries.
class PanelHits {
 public:
  virtual ~PanelHits() = default;
  virtual void on_hit(int64_t query, int64_t panel, const float* values) = 0;
};

// Passes over panels first .. first + count - 1. An infinite limit lets everything pass, a NaN too; where values can be
// NaN, limits must be infinite.
void scan_panels(const PanelQueries& queries, const PanelBase& base, int64_t first, int64_t count, PanelHits& hits);

// The same for bf16, by AMX's tiles.
void scan_panels_amx(const PanelQueries& queries, const PanelBase& base, int64_t first, int64_t count, PanelHits& hits);

// All values of one query and one panel of f32, products only, aligned as vectors are.
void panel_values(const PanelQueries& queries, const PanelBase& base, int64_t query, int64_t panel, float* values);

// All values of some packed queries and all rows of a packed base, where none is ruled out (panel_product.hpp rules
// most out).

// That of query q and row r goes to values[q * stride + r], for whole panels of queries and of rows, whose pads are
// written to as well. The queries' limits are infinite.
void all_values(const PanelQueries& queries, const PanelBase& base, int64_t panels, float* values, int64_t stride);

// The same for bf16 of few enough columns to be added up at once (has_segments), by AMX's tiles.
void all_values_amx(const PanelQueries& queries, const PanelBase& base, int64_t panels, float* values, int64_t stride);

// Chi-square distances in f32 from one row to others anywhere in memory: for ruling pairs out.
// values[i] = sum (query - x)^2 / (query + x), x the row at rows[i]: within relative_error(KeyKind::chi_square) of it
// and underflow_error(), as PanelStep::chi_square is.
void chi_square_values_cpu(const float* query, const float* const* rows, int64_t count, int64_t cols, float* values);

}  // namespace kith
