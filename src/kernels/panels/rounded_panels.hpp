// A blocked product of vectors rounded to signed bytes: a filter at up to four times the f32 rate.
//
// Each vector x is s (b + e): bytes b in -127..127, a scale s, and a rounding error e. With the norms of the errors
// known,
// |<x, c> - s_x s_c <b_x, b_c>| <= |e_x| |c| + |x_b| |e_c|   (e and x_b = s b in the vectors' own unit)
// bounds the error, so that dropped rows are provably no answers; the caller recomputes those that pass.
//
//   value(q, c) = term(c) + factor(q) scale(c) <b_q, b_c>
//
// Panels are as in panel_product.hpp, with four columns (a word of four bytes) where those have one. Integer sums are
// exact. There are kernels for ARM's dot products and for x86's VNNI and AVX2; where has_rounded_product() is false
// nothing here may be called.
//
// Cost: 2 operations per query, row and column; a byte per packed value.
#pragma once

#include "kernels/panels/panel_product.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

struct RoundedBase {
  const void* panels = nullptr;      // of bytes
  const float* terms = nullptr;      // one per row, +inf for padding
  const float* scales = nullptr;     // likewise, 0 for padding
  const int32_t* sums = nullptr;     // likewise: the sum of a row's bytes
  const float* norms = nullptr;      // the largest norm in each panel
  const float* residuals = nullptr;  // the largest residual in each panel
  int64_t cols = 0;
  const float* row_norms = nullptr;      // one per row, or null: tighter bounds for rows that pass
  const float* row_residuals = nullptr;  // likewise
};

// What a query accepts: value <= limit + constant + norm (linear + norm quadratic) + residual tilt. Where rows have
// limits too, the largest of a panel's minus the query's offset counts instead if it is larger.
struct RoundedQueries {
  const void* panels = nullptr;
  int64_t count = 0;
  float* limits = nullptr;  // on_hit may lower them; padded, as all below, to whole panels
  const float* factors = nullptr;
  const float* constant = nullptr;
  const float* linear = nullptr;
  const float* quadratic = nullptr;
  const float* tilt = nullptr;
  const float* row_limits = nullptr;  // per panel of rows; null: rows have no limits
  const float* offsets = nullptr;     // per query; with row limits only

  float bound(int64_t q, float norm, float residual) const {
    return constant[q] + norm * (linear[q] + norm * quadratic[q]) + residual * tilt[q];
  }
  // The largest accepted value of a panel's rows.
  float limit(int64_t q, const RoundedBase& base, int64_t panel) const {
    const float most = row_limits == nullptr ? limits[q] : std::max(limits[q], row_limits[panel] - offsets[q]);
    return most + bound(q, base.norms[panel], base.residuals[panel]);
  }
};

// A query's bytes as the product in use takes them: up to `largest` either way, with `added` added. AVX2 adds two
// products of an unsigned byte of a query and a signed one of a row in 16 bits: with 0..128 and -127..127 they fit.
struct ByteForm {
  int32_t largest = 127;
  int32_t added = 0;
};
inline constexpr ByteForm kVnniQueryForm{127, 128};
inline constexpr ByteForm kAvx2QueryForm{64, 64};
static_assert(2 * 128 * 127 <= INT16_MAX);
ByteForm rounded_query_form();

// As scan_panels: calls on_hit for a query and a panel in which some value passed.
void scan_rounded_panels(const RoundedQueries& queries, const RoundedBase& base, int64_t first, int64_t count,
                         PanelHits& hits);

// One per instruction family, where the compiler supports it.
void scan_rounded_dotprod(const RoundedQueries& queries, const RoundedBase& base, int64_t first, int64_t count,
                          PanelHits& hits);
void scan_rounded_vnni(const RoundedQueries& queries, const RoundedBase& base, int64_t first, int64_t count,
                       PanelHits& hits);
void scan_rounded_avx2(const RoundedQueries& queries, const RoundedBase& base, int64_t first, int64_t count,
                       PanelHits& hits);

// The same on AMX's tiles, for panels packed as those of PanelFormat::i8 are there (kRoundedTileShape): the queries'
// bytes are as rounded, and the rows' sums of bytes are not needed.
inline constexpr PanelShape kRoundedTileShape{32, 32, true, false};
void scan_rounded_amx(const RoundedQueries& queries, const RoundedBase& base, int64_t first, int64_t count,
                      PanelHits& hits);

}  // namespace kith
