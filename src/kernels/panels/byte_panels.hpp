// Packed bytes and bits, as the scans over them (byte_product.hpp, bit_panels.hpp) take them.
#pragma once

#include "kernels/panels/panel_format.hpp"

#include <cstdint>

namespace kith {

struct BytePanelBase {
  const void* panels = nullptr;
  const int32_t* terms = nullptr;  // one for each row
  PanelFormat format = PanelFormat::u8;
  int64_t cols = 0;
  int scale = 2;
};

struct BytePanelQueries {
  const void* panels = nullptr;
  int64_t count = 0;
  int32_t* limits = nullptr;  // on_hit may lower them; padded to whole panels
};

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
