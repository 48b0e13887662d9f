#include "kernels/panels/screen.hpp"

#include "core/infinity.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/panels/panel_format.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kQueryArrays = 5;

int64_t word_bytes(int64_t cols) { return rounded_words(cols) * 4; }

// What a panel that has passed takes, in parts of the time of its product in f32: a look at each of its rows, and a row
// by itself.
constexpr int64_t kParts = 32;
constexpr int64_t kLookParts = 3;
int64_t row_parts(int64_t rows, int64_t width) { return 96 * rows / width; }

// The share that may pass, of a screen that takes a quarter of the product's time (measured), and of AVX2's, which takes
// more than half; where AVX-512 multiplies f32 and AVX2 bytes it takes all.
double most_passing() {
  if (has_fast_rounded_product(cpu_extensions())) return 0.4;
  constexpr int64_t kAvx2Rows = 16;
  return panel_shape(PanelFormat::rounded).rows_per_panel == kAvx2Rows ? 0.2 : 0.0;
}

// The more columns, the less a pair's other work weighs.
double worthwhile(int64_t cols) { return most_passing() * static_cast<double>(cols) / static_cast<double>(cols + 96); }

}  // namespace

BaseScreen::BaseScreen(int64_t rows, int64_t cols, const Resources& resources)
    : cols_(cols),
      width_(panel_shape(PanelFormat::rounded).rows_per_panel),
      bytes_(rows * word_bytes(cols), "the packed rows", resources),
      scales_(rows, "the packed rows' scales", resources),
      sums_(rows, "the packed rows' scales", resources),
      residuals_(rows / width_, "the packed rows' scales", resources),
      row_residuals_(rows, "the packed rows' scales", resources) {}

int64_t BaseScreen::bytes_for(int64_t rows, int64_t cols) {
  return rows * word_bytes(cols) + array_bytes<float>(4 * rows);
}

void BaseScreen::clear_panel(int64_t panel, int64_t count) {
  residuals_[panel] = 0;
  if (count == width_) return;
  const int64_t first = panel * width_;
  std::fill_n(bytes_.data() + first * word_bytes(cols_), width_ * word_bytes(cols_), int8_t{0});
  std::fill_n(scales_.data() + first, width_, 0.0f);
  std::fill_n(sums_.data() + first, width_, 0);
  std::fill_n(row_residuals_.data() + first, width_, 0.0f);
}

void BaseScreen::put(int64_t panel, int64_t i, const float* row) {
  const int64_t first = panel * width_;
  const RoundedVector rounded = round_row(row, cols_, width_, bytes_.data() + first * word_bytes(cols_) + i * 4);
  scales_[first + i] = rounded.scale;
  sums_[first + i] = rounded.sum;
  const float residual = std::isfinite(rounded.residual) ? rounded.residual : kInfinity;
  row_residuals_[first + i] = residual;
  residuals_[panel] = std::max(residuals_[panel], residual);
}

RoundedBase BaseScreen::panels(const float* terms, const float* norms, const float* row_norms) const {
  return {bytes_.data(),     terms, scales_.data(), sums_.data(),         norms,
          residuals_.data(), cols_, row_norms,      row_residuals_.data()};
}

QueryScreen::QueryScreen(int64_t count, int64_t cols, const Resources& resources)
    : count_(count),
      cols_(cols),
      width_(panel_shape(PanelFormat::rounded).queries_per_panel),
      bytes_(count * word_bytes(cols), "the packed queries", resources),
      arrays_(count * kQueryArrays, "the queries' error bounds", resources) {}

int64_t QueryScreen::bytes_for(int64_t count, int64_t cols) {
  return count * word_bytes(cols) + array_bytes<float>(count * kQueryArrays);
}

RoundedQueryTerms rounded_query_terms(const RoundedVector& rounded, double squared_norm, int64_t cols,
                                      bool differences) {
  const double norm = std::sqrt(squared_norm);
  // A product of bytes has fewer roundings than one of floats; eight more stand for its scales and conversions.
  ErrorBound bound = differences ? squared_l2_product_bound(norm, cols + 8) : inner_product_bound(norm, cols + 8);
  if (!(squared_norm < kLargestSquaredNorm)) bound.constant = kInfinity;
  const float scale = (differences ? 2.0f : 1.0f) * (1 + 0x1p-18f);
  return {(differences ? -2.0f : -1.0f) * rounded.scale, bound.constant, bound.linear + scale * rounded.residual,
          bound.quadratic, scale * (static_cast<float>(norm) + rounded.residual)};
}

void QueryScreen::put(int64_t query, const float* moved, double squared_norm, bool differences) {
  const int64_t panel_first = query / width_ * width_;
  const RoundedVector rounded =
      round_query(moved, cols_, width_, bytes_.data() + panel_first * word_bytes(cols_) + (query - panel_first) * 4);
  set(query, rounded_query_terms(rounded, squared_norm, cols_, differences));
}

void QueryScreen::set(int64_t query, const RoundedQueryTerms& terms) {
  float* at = arrays_.data() + query;
  for (const float term : {terms.factor, terms.constant, terms.linear, terms.quadratic, terms.tilt}) {
    *at = term;
    at += count_;
  }
}

RoundedQueries QueryScreen::panels(int64_t first, int64_t count, float* limits) const {
  const auto array = [&](int64_t i) { return arrays_.data() + i * count_ + first; };
  return {bytes_.data() + first * word_bytes(cols_), count, limits, array(0), array(1), array(2), array(3), array(4)};
}

ScreenedProduct::ScreenedProduct(const PanelQueries& queries, const PanelBase& base,
                                 const RoundedQueries& screen_queries, const RoundedBase& screen_base, ScreenHits& hits)
    : queries_(queries),
      base_(base),
      screen_queries_(screen_queries),
      screen_base_(screen_base),
      hits_(hits),
      width_(panel_shape(PanelFormat::rounded).rows_per_panel),
      use_(worthwhile(base.cols)) {}

bool ScreenedProduct::pays() { return most_passing() > 0; }

void ScreenedProduct::scan(int64_t first, int64_t count) {
  int64_t panels = 0;
  for (int64_t at = first; at < first + count; at += panels) {
    // Without a limit everything passes.
    const bool screens = !std::isinf(queries_.limits[0]) && use_.screens_next();
    panels = std::min(screens ? use_.panels() : ScreenUse::kStretch, first + count - at);
    if (!screens) {
      hits_.make_panels(at, panels);
      scan_panels(queries_, base_, at, panels, hits_);
      continue;
    }
    const int64_t pairs = panels * queries_.count;
    const int64_t before = spent_;
    scan_rounded_panels(screen_queries_, screen_base_, at, panels, *this);
    screened_ += pairs;
    use_.count(kParts * pairs, spent_ - before);
  }
}

// A panel was tested by the largest norm and residual among its rows; here each row is by its own. Where norms differ
// much that leaves few of them.
void ScreenedProduct::on_hit(int64_t query, int64_t panel, const float* rounded) {
  const float limit = screen_queries_.limits[query];
  const float* const norms = screen_base_.row_norms + panel * width_;
  const float* const residuals = screen_base_.row_residuals + panel * width_;
  float limits[kMostRowsPerPanel];
  for (int64_t i = 0; i < width_; ++i) limits[i] = limit + screen_queries_.bound(query, norms[i], residuals[i]);
  const uint64_t rows = places_within(rounded, limits, width_);
  spent_ += kLookParts;
  if (rows == 0) return;
  ++passed_;
  const int64_t count = std::popcount(rows);
  // A panel that would have to be made takes longer than its rows one by one.
  if (hits_.takes_rows() && (row_parts(count, width_) <= kParts || !hits_.holds_panel(panel))) {
    if (!hits_.needs_rows(query, panel)) spent_ += row_parts(count, width_);
    return hits_.on_rows(query, panel, rows);
  }
  spent_ += kParts;
  alignas(64) float values[kMostRowsPerPanel];
  hits_.make_panels(panel, 1);
  panel_values(queries_, base_, query, panel, values);
  hits_.on_hit(query, panel, values);
}

}  // namespace kith
