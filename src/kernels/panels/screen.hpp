// Screens: packed vectors rounded to bytes, which processors with dot products of bytes multiply four times as fast as
// f32. Rows that a rounded product excludes, within its error bounds, need no exact computation.
//
// Memory: a byte per value and a few floats per vector.
#pragma once

#include "core/host_array.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/panels/panel_product.hpp"
#include "kernels/panels/rounded_panels.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// The screen of a base. Different panels may be filled at once.
class BaseScreen {
 public:
  BaseScreen() = default;
  // For `rows` rows, whole panels.
  BaseScreen(int64_t rows, int64_t cols, const Resources& resources);
  static int64_t bytes_for(int64_t rows, int64_t cols);

  // Prepares a panel for its first `count` rows; the others are padding.
  void clear_panel(int64_t panel, int64_t count);
  // Sets row `i` of a panel, given as the product takes it.
  void put(int64_t panel, int64_t i, const float* row);

  // As the input of a product, with a term and a norm per row (RoundedBase) and the largest norm per panel.
  RoundedBase panels(const float* terms, const float* norms, const float* row_norms) const;
  int64_t bytes() const {
    return bytes_.bytes() + scales_.bytes() + sums_.bytes() + residuals_.bytes() + row_residuals_.bytes();
  }

 private:
  int64_t cols_ = 0;
  int64_t width_ = 0;
  HostArray<int8_t> bytes_;
  HostArray<float> scales_;
  HostArray<int32_t> sums_;
  HostArray<float> residuals_;  // the largest per panel
  HostArray<float> row_residuals_;
};

// The values of one query in RoundedQueries.
struct RoundedQueryTerms {
  float factor = 0;
  float constant = 0;
  float linear = 0;
  float quadratic = 0;
  float tilt = 0;
};
// The product is scaled by -2 where `differences` are wanted, else by -1.
RoundedQueryTerms rounded_query_terms(const RoundedVector& rounded, double squared_norm, int64_t cols,
                                      bool differences);

// The screen of queries. Different panels may be filled at once.
class QueryScreen {
 public:
  QueryScreen() = default;
  // For `count` queries, whole panels.
  QueryScreen(int64_t count, int64_t cols, const Resources& resources);
  static int64_t bytes_for(int64_t count, int64_t cols);

  // Sets a query, given as the product takes it. The product is scaled by -2 for `differences`, else by -1.
  void put(int64_t query, const float* moved, double squared_norm, bool differences);
  // Sets a padding query.
  void clear(int64_t query) { set(query, {}); }

  // The queries from `first` on, the first of a panel.
  RoundedQueries panels(int64_t first, int64_t count, float* limits) const;

 private:
  void set(int64_t query, const RoundedQueryTerms& terms);

  int64_t count_ = 0;
  int64_t cols_ = 0;
  int64_t width_ = 0;
  HostArray<int8_t> bytes_;
  HostArray<float> arrays_;  // the fields of RoundedQueryTerms, count_ values each
};

// A product of f32 panels behind a screen: if worthwhile, rounded rows are multiplied first, and only those that this
// does not exclude in f32.

// Decides stretch by stretch whether to use a screen, from the share that it let through: if too much, it is skipped
// for the next stretches, twice as many each time.
class ScreenUse {
 public:
  static constexpr int64_t kStretch = 16;  // panels

  // Screening pays while at most the share `worthwhile` passes; both may be counted in any unit.
  explicit ScreenUse(double worthwhile) : worthwhile_(worthwhile) {}

  // The length of the next stretch: a short trial after a stretch that let too much through.
  int64_t panels() const { return wait_ > kFirstWait ? kTrial : kStretch; }
  // Call once before each stretch.
  bool screens_next() {
    if (waiting_ == 0) return true;
    --waiting_;
    return false;
  }
  void count(int64_t screened, int64_t passed) {
    const bool pays = static_cast<double>(passed) <= worthwhile_ * static_cast<double>(screened);
    waiting_ = pays ? 0 : wait_;
    wait_ = pays ? kFirstWait : std::min(2 * wait_, kLongestWait);
  }

 private:
  static constexpr int64_t kTrial = 4;
  static constexpr int64_t kFirstWait = 2;
  static constexpr int64_t kLongestWait = 64;
  double worthwhile_;
  int64_t wait_ = kFirstWait;
  int64_t waiting_ = 0;  // stretches left to skip
};

// Receives what a screen lets through: a panel's values in f32, or, for few rows, their numbers in the panel.
class ScreenHits : public PanelHits {
 public:
  // Whether few rows of a panel are compared one by one, rather than all by a product,
  virtual bool takes_rows() const = 0;
  // and whether they would be after the product too, which then saves nothing.
  virtual bool needs_rows(int64_t query, int64_t panel) const = 0;
  // Bit i of `rows` is row i of the panel.
  virtual void on_rows(int64_t query, int64_t panel, uint64_t rows) = 0;
  // For panels packed on demand (panel_ring.hpp): whether one is ready, and a call to pack some.
  virtual bool holds_panel(int64_t) const { return true; }
  virtual void make_panels(int64_t, int64_t) {}
};

class ScreenedProduct final : private PanelHits {
 public:
  // Whether bytes are multiplied faster than f32 for many queries.
  static bool pays();

  // The screen has the panels' queries, rows and limits. What passes goes to `hits`.
  ScreenedProduct(const PanelQueries& queries, const PanelBase& base, const RoundedQueries& screen_queries,
                  const RoundedBase& screen_base, ScreenHits& hits);

  // As scan_panels().
  void scan(int64_t first, int64_t count);

  // Pairs of a query and a panel in all scans: how many were screened, and how many passed.
  int64_t screened() const { return screened_; }
  int64_t passed() const { return passed_; }

 private:
  void on_hit(int64_t query, int64_t panel, const float* rounded) override;

  const PanelQueries queries_;
  const PanelBase base_;
  const RoundedQueries screen_queries_;
  const RoundedBase screen_base_;
  ScreenHits& hits_;
  const int64_t width_;  // rows in a panel
  int64_t screened_ = 0;
  int64_t passed_ = 0;
  int64_t spent_ = 0;  // on what has passed, in parts of a panel's product (kParts)
  ScreenUse use_;
};

}  // namespace kith
