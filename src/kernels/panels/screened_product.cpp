#include "kernels/panels/screened_product.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

// Measured: the more columns, the less a pair's other work weighs.
double worthwhile(int64_t cols) { return 0.4 * static_cast<double>(cols) / static_cast<double>(cols + 96); }

}  // namespace

ScreenedProduct::ScreenedProduct(const PanelQueries& queries, const PanelBase& base,
                                 const RoundedQueries& screen_queries, const RoundedBase& screen_base, PanelHits& hits)
    : queries_(queries),
      base_(base),
      screen_queries_(screen_queries),
      screen_base_(screen_base),
      hits_(hits),
      use_(worthwhile(base.cols)) {}

void ScreenedProduct::scan(int64_t first, int64_t count) {
  int64_t panels = 0;
  for (int64_t at = first; at < first + count; at += panels) {
    // Without a limit everything passes.
    const bool screens = !std::isinf(queries_.limits[0]) && use_.screens_next();
    panels = std::min(screens ? use_.panels() : ScreenUse::kStretch, first + count - at);
    if (!screens) {
      scan_panels(queries_, base_, at, panels, hits_);
      continue;
    }
    const int64_t pairs = panels * queries_.count;
    const int64_t before = passed_;
    scan_rounded_panels(screen_queries_, screen_base_, at, panels, *this);
    screened_ += pairs;
    use_.count(pairs, passed_ - before);
  }
}

void ScreenedProduct::on_hit(int64_t query, int64_t panel, const float*) {
  ++passed_;
  alignas(64) float values[kMostRowsPerPanel];
  panel_values(queries_, base_, query, panel, values);
  hits_.on_hit(query, panel, values);
}

}  // namespace kith
