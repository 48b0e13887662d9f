// Packed queries against packed rows in f32, or rounded to bytes without f32 beside them: one scan and one bound for
// both.
#pragma once

#include "kernels/panels/packed_queries.hpp"
#include "kernels/panels/packed_rows.hpp"

#include <cstdint>

namespace kith {

class PackedProduct {
 public:
  // Queries from `first`, the first of a panel, on; below they count from there. Each accepts values up to its limit
  // and its bound; on_hit may lower limits, which are padded to whole panels.
  PackedProduct(const PackedQueries& queries, int64_t first, int64_t count, float* limits, const PackedRows& rows)
      : rounded_(rows.format() == PanelFormat::rounded), panels_(rows.panel_count()) {
    if (rounded_) {
      rounded_queries_ = queries.screen_panels(first, count, limits);
      rounded_rows_ = rows.screen_panels();
    } else {
      float_queries_ = queries.panels(first, count, limits);
      float_rows_ = rows.panels();
    }
  }

  void scan(PanelHits& hits) const {
    if (rounded_) return scan_rounded_panels(rounded_queries_, rounded_rows_, 0, panels_, hits);
    scan_panels(float_queries_, float_rows_, 0, panels_, hits);
  }
  float bound(int64_t query, int64_t panel) const {
    if (!rounded_) return float_queries_.bound(query).at(float_rows_.norms[panel]);
    return rounded_queries_.bound(query, rounded_rows_.norms[panel], rounded_rows_.residuals[panel]);
  }

 private:
  const bool rounded_;
  const int64_t panels_;
  PanelQueries float_queries_;
  PanelBase float_rows_;
  RoundedQueries rounded_queries_;
  RoundedBase rounded_rows_;
};

}  // namespace kith
