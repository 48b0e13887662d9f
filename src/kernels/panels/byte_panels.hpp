// Packed bytes and bits, as the scans over them (byte_product.hpp, bit_panels.hpp) take them.
#pragma once

#include "kernels/panels/panel_format.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

struct BytePanelBase {
  const void* panels = nullptr;
  const int32_t* terms = nullptr;  // one for each row
  PanelFormat format = PanelFormat::u8;
  int64_t cols = 0;
  int scale = 2;
};

// A value passes that is within its query's limit or, where rows have limits too, within the largest of its panel's
// rows: these are of sums, which exceed a query's values by its offset, and at most kLargestRowLimit either way.
struct BytePanelQueries {
  const void* panels = nullptr;
  int64_t count = 0;
  int32_t* limits = nullptr;            // on_hit may lower them; padded to whole panels
  const int32_t* row_limits = nullptr;  // of each panel of rows; none: rows have none
  const int32_t* offsets = nullptr;     // then of each query, padded as limits are

  int32_t limit(int64_t query, int64_t panel) const {
    return row_limits == nullptr ? limits[query] : std::max(limits[query], row_limits[panel] - offsets[query]);
  }
};

// Beyond every sum, and so small that no difference from an offset overflows.
inline constexpr int32_t kLargestRowLimit = 1 << 30;
static_assert(kMostByteColumns * 255 * 256 <= kLargestRowLimit);

// What limits may be: the first lets nothing pass.
inline constexpr int32_t kSmallestLimit = -0x7FFFFFFF;
inline constexpr int32_t kLargestLimit = 0x7FFFFFFF;

// Called for a query and a panel in which some value passed; bit i of `passed` stands for row i, values has
// rows_per_panel entries. Rows that only fill up a panel may pass.
class BytePanelHits {
 public:
  virtual ~BytePanelHits() = default;
  virtual void on_hit(int64_t query, int64_t panel, uint64_t passed, const int32_t* values) = 0;
};

}  // namespace kith
