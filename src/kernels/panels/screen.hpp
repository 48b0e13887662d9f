// Screens: vectors rounded to bytes and packed, which a processor with dot products of bytes multiplies four times as
// fast as f32. What a rounded product excludes, within its bounds, need not be computed any better.
//
// Cost: a byte for each value and a few floats for each vector.
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

  // Makes a panel ready for its first `count` rows; the others stay empty.
  void clear_panel(int64_t panel, int64_t count);
  // Row `i` of a panel, as it is multiplied.
  void put(int64_t panel, int64_t i, const float* row);

  // With a term and a norm for each row (RoundedBase) and the largest norm in each panel.
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
  HostArray<float> residuals_;  // the largest in each panel
  HostArray<float> row_residuals_;
};

// What RoundedQueries has of one query.
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

  // Takes a query as it is multiplied. The product is scaled by -2 where `differences` are wanted, else by -1.
  void put(int64_t query, const float* moved, double squared_norm, bool differences);
  // A query that only fills up a panel.
  void clear(int64_t query) { set(query, {}); }

  // Those from `first`, the first of a panel, on.
  RoundedQueries panels(int64_t first, int64_t count, float* limits) const;

 private:
  void set(int64_t query, const RoundedQueryTerms& terms);

  int64_t count_ = 0;
  int64_t cols_ = 0;
  int64_t width_ = 0;
  HostArray<int8_t> bytes_;
  HostArray<float> arrays_;  // of count_ each: RoundedQueryTerms' in their order
};

// A product of f32 panels behind a screen: rounded rows are looked at first, where that is of use, and what they do not
// rule out is multiplied in f32.

// Whether a screen is worth looking at, decided stretch by stretch from what it let through: where that was too much,
// the next stretches go without, twice as many each time.
class ScreenUse {
 public:
  static constexpr int64_t kStretch = 16;  // panels

  // Screening pays while no more than the share `worthwhile` of what is looked at passes, in whatever unit both are
  // counted.
  explicit ScreenUse(double worthwhile) : worthwhile_(worthwhile) {}

  // How long the next stretch is: after one that let too much through, shorter, as a trial.
  int64_t panels() const { return wait_ > kFirstWait ? kTrial : kStretch; }
  // Asked once before each stretch.
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
  int64_t waiting_ = 0;  // stretches to come without
};

// What a screen lets through: a panel's values in f32, or, of few rows, their places in the panel.
class ScreenHits : public PanelHits {
 public:
  // Whether few rows of a panel are looked at one by one, rather than all by a product,
  virtual bool takes_rows() const = 0;
  // and whether they would be after the product too, which then saves nothing.
  virtual bool needs_rows(int64_t query, int64_t panel) const = 0;
  // Bit i of `rows` stands for row i of the panel.
  virtual void on_rows(int64_t query, int64_t panel, uint64_t rows) = 0;
  // For panels packed on demand (panel_ring.hpp): whether one is ready, and a call to pack some.
  virtual bool holds_panel(int64_t) const { return true; }
  virtual void make_panels(int64_t, int64_t) {}
};

class ScreenedProduct final : private PanelHits {
 public:
  // Whether bytes are multiplied faster than f32 for many queries.
  static bool pays();

  // The screen's queries and rows are those of the panels; both have the same limits. What passes goes to `hits`.
  ScreenedProduct(const PanelQueries& queries, const PanelBase& base, const RoundedQueries& screen_queries,
                  const RoundedBase& screen_base, ScreenHits& hits);

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
  ScreenHits& hits_;
  const int64_t width_;  // rows in a panel
  int64_t screened_ = 0;
  int64_t passed_ = 0;
  int64_t spent_ = 0;  // on what has passed, in parts of a panel's product (kParts)
  ScreenUse use_;
};

}  // namespace kith
