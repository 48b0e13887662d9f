// A blocked f32 matrix product that never writes its result: each tile's values are compared, in registers, with a
// threshold for each query, and only those at or below it are handed out.
//
// Rows of the base are packed into panels: `rows_per_panel` rows side by side, column by column, so that a step of the
// kernel loads whole vectors of rows. Queries are packed likewise, `queries_per_panel` together. A tile is one panel of
// each, its sums all in registers; how large they are depends on the instruction set. The last panels are filled up
// with zeros.
//
//   value(q, x) = term(x) + q' x'     with q', x' as packed: the caller scales the queries by -2 or -1
//
// The sums start from the terms, so adding them costs nothing.
//
// Cost: 2 flops for each query, row and column; n cols floats for the packed base.
#pragma once

#include "kernels/distance/error_bound.hpp"

#include <cstdint>

namespace kith {

struct PanelShape {
  int64_t rows_per_panel = 0;
  int64_t queries_per_panel = 0;
};

// For the instruction set in use.
PanelShape panel_shape();

// out[column * width + i] = rows[i * cols + column] * scale, zeros for the rows from count on.
void pack_panel(const float* rows, int64_t count, int64_t cols, int64_t width, float scale, float* out);

// The packed base that a scan passes over.
struct PanelBase {
  const float* panels = nullptr;
  const float* terms = nullptr;  // one for each row, +inf for those that only fill up
  const float* norms = nullptr;  // the largest norm in each panel
  int64_t cols = 0;
};

// The packed queries of one scan, with what each accepts: value <= limit + bound(panel's norm).
struct PanelQueries {
  const float* panels = nullptr;
  int64_t count = 0;
  float* limits = nullptr;  // on_hit may lower them
  // The bounds' coefficients (ErrorBound). These and the limits are padded to whole panels.
  const float* constant = nullptr;
  const float* linear = nullptr;
  const float* quadratic = nullptr;

  ErrorBound bound(int64_t query) const { return {constant[query], linear[query], quadratic[query]}; }
};

// Called for a query and a panel in which some value passed; values has rows_per_panel entries.
class PanelHits {
 public:
  virtual ~PanelHits() = default;
  virtual void on_hit(int64_t query, int64_t panel, const float* values) = 0;
};

// Passes over panels first .. first + count - 1. An infinite limit lets everything pass, a NaN too; where values can be
// NaN, limits must be infinite.
void scan_panels(const PanelQueries& queries, const PanelBase& base, int64_t first, int64_t count, PanelHits& hits);

}  // namespace kith
