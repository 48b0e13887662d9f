#include "kernels/product/screened_product.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kStretch = 16;  // panels
constexpr int64_t kUnscreenedStretches = 4;

}  // namespace

ScreenedProduct::ScreenedProduct(const PanelQueries& queries, const PanelBase& base,
                                 const RoundedQueries& screen_queries, const RoundedBase& screen_base, PanelHits& hits)
    : queries_(queries), base_(base), screen_queries_(screen_queries), screen_base_(screen_base), hits_(hits) {}

void ScreenedProduct::scan(int64_t first, int64_t count) {
  for (int64_t at = first; at < first + count; at += kStretch) {
    const int64_t panels = std::min(kStretch, first + count - at);
    if (unscreened_stretches_ > 0) {
      --unscreened_stretches_;
      scan_panels(queries_, base_, at, panels, hits_);
      continue;
    }
    const int64_t pairs = panels * queries_.count;
    const int64_t before = passed_;
    scan_rounded_panels(screen_queries_, screen_base_, at, panels, *this);
    screened_ += pairs;
    if (passed_ - before > pairs / 2) unscreened_stretches_ = kUnscreenedStretches;
  }
}

void ScreenedProduct::on_hit(int64_t query, int64_t panel, const float*) {
  ++passed_;
  alignas(64) float values[kMostRowsPerPanel];
  panel_values(queries_, base_, query, panel, values);
  hits_.on_hit(query, panel, values);
}

}  // namespace kith
