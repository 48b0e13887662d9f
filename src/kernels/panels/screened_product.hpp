// A product of f32 panels behind a screen: rounded rows are looked at first, where that is of use, and what they do not
// rule out is multiplied in f32.
#pragma once

#include "kernels/panels/panel_product.hpp"
#include "kernels/panels/rounded_panels.hpp"
#include "kernels/panels/screen_use.hpp"

#include <cstdint>

namespace kith {

class ScreenedProduct final : private PanelHits {
 public:
  // The screen's queries and rows are those of the panels; both have the same limits. What passes goes to `hits`.
  ScreenedProduct(const PanelQueries& queries, const PanelBase& base, const RoundedQueries& screen_queries,
                  const RoundedBase& screen_base, PanelHits& hits);

  // As scan_panels().
  void scan(int64_t first, int64_t count);

  // Pairs of a query and a panel, in all scans: those that the screen has looked at, and those it has let through.
  int64_t screened() const { return screened_; }
  int64_t passed() const { return passed_; }

 private:
  void on_hit(int64_t query, int64_t panel, const float* rounded) override;

  const PanelQueries queries_;
  const PanelBase base_;
  const RoundedQueries screen_queries_;
  const RoundedBase screen_base_;
  PanelHits& hits_;
  int64_t screened_ = 0;
  int64_t passed_ = 0;
  ScreenUse use_;
};

}  // namespace kith
