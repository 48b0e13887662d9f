#include "exact/direct_scan.hpp"

#include "exact/finite_check.hpp"
#include "exact/packed_base.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/distance/stored_row.hpp"
#include "kernels/product/screen_use.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kTileRows = 256;
constexpr int64_t kColumnsBetweenCheckpoints = 1 << 14;  // of tiles: milliseconds of work for each query

// From the fast sums of a row to bounds for its key, per metric.
class KeyBounds {
 public:
  KeyBounds(KeyKind kind, int64_t cols, double query_squared_norm)
      : kind_(kind),
        relative_(static_cast<float>(product_error(cols))),
        absolute_(static_cast<float>(underflow_error(cols))),
        query_error_(static_cast<float>(product_error(cols) * std::sqrt(query_squared_norm))),
        query_known_(query_squared_norm < kLargestSquaredNorm) {}

  // False where nothing is known. What `fact` is: scan_rows_cpu.hpp.
  bool bound(float value, float fact, float* lower, float* upper) const {
    float key = value;
    float error = value * relative_ + absolute_;  // sums of terms that are not negative
    bool known = value < kInfinity;
    if (kind_ == KeyKind::inner_product) {
      key = -value;
      error = query_error_ * std::sqrt(fact + absolute_) + absolute_;
      known = query_known_ && fact < static_cast<float>(kLargestSquaredNorm);
    } else if (kind_ == KeyKind::cosine) {  // the query is normalised
      key = 1.0f - value / std::sqrt(fact);
      error = 2 * relative_;
      known = fact > kSmallestSquaredNorm && fact < static_cast<float>(kLargestSquaredNorm);
    } else if (kind_ == KeyKind::linf) {
      known = std::isfinite(fact);
    }
    known = known && std::isfinite(value);
    *lower = known ? key - error : -kInfinity;
    *upper = known ? key + error : kInfinity;
    if (known && kind_ == KeyKind::l2) {
      *lower = root_below(*lower);
      *upper = root_above(*upper);
    }
    return known;
  }

 private:
  KeyKind kind_;
  float relative_;
  float absolute_;
  float query_error_;
  bool query_known_;
};

// Tells most rows of a tile apart from those that may matter, by a few operations for each: what it excludes has a
// lower bound above the threshold. KeyBounds looks at the rest.
class QuickTest {
 public:
  // `facts` are those of the tile's rows.
  QuickTest(KeyKind kind, int64_t cols, double query_squared_norm, float threshold, const float* facts, int64_t rows)
      : kind_(kind) {
    const auto relative = static_cast<float>(product_error(cols));
    const auto absolute = static_cast<float>(underflow_error(cols));
    if (kind == KeyKind::inner_product) {
      float largest = 0;  // NaN where one is: then nothing is excluded
      for (int64_t i = 0; i < rows; ++i) largest = facts[i] <= largest ? largest : facts[i];
      const bool known = query_squared_norm < kLargestSquaredNorm && largest < static_cast<float>(kLargestSquaredNorm);
      const auto query_norm = static_cast<float>(std::sqrt(query_squared_norm));
      const float error = 1.001f * (relative * query_norm * std::sqrt(largest + absolute) + absolute);
      limit_ = known ? -(threshold + error) : -kInfinity;
    } else if (kind == KeyKind::cosine) {
      // 1 - value / |x| above the threshold by more than the error: value below |x| times this, which must be clear of
      // underflow when squared.
      const float least = 1 - threshold - 2.001f * relative;
      limit_ = least > 1e-3f ? least * least * (1 - 0x1p-20f) : 0;
    } else {
      const float most = kind == KeyKind::l2 ? square_above(threshold) : threshold;
      limit_ = relative < 0.25f ? (most + absolute) * (1 + 2 * relative) : kInfinity;
    }
  }

  // Writes the rows that are not excluded and returns how many there are.
  int64_t run(const float* values, const float* facts, int64_t rows, uint16_t* left) const {
    const float limit = limit_;
    const auto keep = [&](const auto& excluded) {
      int64_t count = 0;
      for (int64_t i = 0; i < rows; ++i) {
        left[count] = static_cast<uint16_t>(i);
        count += !excluded(values[i], facts[i]);
      }
      return count;
    };
    switch (kind_) {
      case KeyKind::inner_product: return keep([=](float value, float) { return value < limit && value > -kInfinity; });
      case KeyKind::cosine:
        return keep([=](float value, float fact) {
          const bool known = fact > kSmallestSquaredNorm && fact < static_cast<float>(kLargestSquaredNorm);
          return limit > 0 && known && value > -kInfinity && (value <= 0 || value * value < limit * fact);
        });
      case KeyKind::linf:
        return keep([=](float value, float fact) { return value > limit && value < kInfinity && fact < kInfinity; });
      default: return keep([=](float value, float) { return value > limit && value < kInfinity; });
    }
  }

 private:
  KeyKind kind_;
  float limit_ = 0;
};

// One task: all queries against a range of rows.
class RangeScan {
 public:
  RangeScan(const ScanContext& context, const float* queries, int64_t split, int slot, bool check_finite)
      : context_(context), queries_(queries), split_(split), slot_(slot), check_finite_(check_finite) {}

  // Tile by tile, so that a tile is read from memory once. Returns the first row that is not finite, or -1; what
  // follows it is not looked at.
  int64_t run(int64_t first, int64_t end) {
    const int64_t between_checkpoints = std::max<int64_t>(1, kColumnsBetweenCheckpoints / context_.base.cols());
    int64_t tiles = 0;
    for (int64_t tile = first; tile < end; tile += kTileRows) {
      const int64_t count = std::min(kTileRows, end - tile);
      const MatrixView rows = context_.base.slice(tile, count);
      for (int64_t q = 0; q < context_.queries.size(); ++q) {
        if (const int64_t bad = scan_tile(q, rows, tile); bad >= 0) return bad;
      }
      context_.meter.add(context_.queries.size() * count);
      if (++tiles % between_checkpoints == 0) context_.meter.checkpoint();
    }
    return -1;
  }

  // One query against at most kTileRows rows, of which the first is number `first`. Returns as run().
  int64_t scan_tile(int64_t query, const MatrixView& rows, int64_t first) {
    scan_rows_cpu(context_.kind, queries_ + query * rows.cols(), rows, values_, facts_);
    const KeyBounds bounds(context_.kind, rows.cols(), context_.queries.squared_norm(query));
    CandidateList& list = context_.list(query, split_);
    context_.exchange_threshold(query, &list);
    float threshold = list.threshold();
    uint16_t left[kTileRows];
    const QuickTest quick(context_.kind, rows.cols(), context_.queries.squared_norm(query), threshold, facts_,
                          rows.rows());
    const int64_t count = quick.run(values_, facts_, rows.rows(), left);
    for (int64_t n = 0; n < count; ++n) {
      const int64_t i = left[n];
      float lower;
      float upper;
      const bool known = bounds.bound(values_[i], facts_[i], &lower, &upper);
      if (lower > threshold) continue;
      if (!context_.keeps_row(first + i)) continue;
      if (!known && check_finite_ && !row_is_finite(rows, i)) return first + i;
      list.push(lower, upper, static_cast<uint32_t>(first + i));
      if (list.has_room()) continue;
      context_.make_room(query, split_, slot_);
      threshold = list.threshold();
    }
    return -1;
  }

 private:
  const ScanContext& context_;
  const float* const queries_;
  const int64_t split_;
  const int slot_;
  const bool check_finite_;
  float values_[kTileRows];
  float facts_[kTileRows] = {};
};

// One task behind a screen: the rows that it does not rule out, in stretches of panels, where it is of use.
class ScreenedRangeScan final : private PanelHits {
 public:
  ScreenedRangeScan(const ScanContext& context, const PackedBase& packed, int64_t split, RangeScan& scan)
      : context_(context),
        base_(packed.screen_panels()),
        rows_per_panel_(packed.rows_per_panel()),
        split_(split),
        scan_(scan),
        limits_(static_cast<size_t>(context.queries.size() + kMostQueriesPerPanel), -kInfinity),
        queries_(context.queries.screen_panels(0, context.queries.size(), limits_.data())) {}

  void run(int64_t first_panel, int64_t end_panel) {
    for (int64_t panel = first_panel; panel < end_panel; panel += ScreenUse::kStretch) {
      const int64_t panels = std::min(ScreenUse::kStretch, end_panel - panel);
      const int64_t first = panel * rows_per_panel_;
      const int64_t end = std::min(first + panels * rows_per_panel_, context_.base.rows());
      for (int64_t q = 0; q < context_.queries.size(); ++q) set_limit(q);
      if (std::isinf(limits_[0]) || !use_.screens_next()) {
        scan_.run(first, end);
        continue;
      }
      read_ = 0;
      scan_rounded_panels(queries_, base_, panel, panels, *this);
      use_.count((end - first) * context_.queries.size(), read_);
      context_.meter.add(context_.queries.size() * (end - first));
      context_.meter.checkpoint();
    }
  }

 private:
  static constexpr double kWorthwhile = 0.5;
  static constexpr int64_t kAlone = 4;  // a row by itself takes as long as so many in a run

  void on_hit(int64_t query, int64_t panel, const float* rounded) override {
    const int64_t first = panel * rows_per_panel_;
    const int64_t count = std::min(rows_per_panel_, context_.base.rows() - first);
    const float limit = queries_.limit(query, base_, panel);
    const auto passes = [&](int64_t i) { return !(rounded[i] > limit); };  // a NaN does
    int64_t passed = 0;
    for (int64_t i = 0; i < count; ++i) passed += passes(i);
    if (passed * kAlone >= count) {
      read_ += count;
      scan_.scan_tile(query, context_.base.slice(first, count), first);
    } else {
      read_ += passed * kAlone;
      for (int64_t i = 0; i < count; ++i) {
        if (passes(i)) scan_.scan_tile(query, context_.base.slice(first + i, 1), first + i);
      }
    }
    set_limit(query);
  }

  // On value + offset, which is the key, or its square.
  void set_limit(int64_t query) {
    CandidateList& list = context_.list(query, split_);
    context_.exchange_threshold(query, &list);
    const float most = context_.kind == KeyKind::l2 ? square_above(list.limit()) : list.limit();
    limits_[static_cast<size_t>(query)] = most - context_.queries.offset(query);
  }

  const ScanContext& context_;
  const RoundedBase base_;
  const int64_t rows_per_panel_;
  const int64_t split_;
  RangeScan& scan_;
  std::vector<float> limits_;
  const RoundedQueries queries_;
  ScreenUse use_{kWorthwhile};
  int64_t read_ = 0;  // rows, in this stretch
};

}  // namespace

void direct_scan(const ScanContext& context, const PackedBase* ready, bool check_finite, int64_t first_row) {
  const MatrixView& base = context.base;
  const int64_t cols = base.cols();
  // Cosine scans with normalised queries, which keeps their products clear of underflow.
  const HostBuffer normalised(
      context.kind == KeyKind::cosine ? context.queries.size() * cols * static_cast<int64_t>(sizeof(float)) : 0,
      "the normalised queries", context.resources);
  const float* queries = context.queries.row(0);
  if (context.kind == KeyKind::cosine) {
    for (int64_t q = 0; q < context.queries.size(); ++q) {
      const CanonicalQuery query = context.queries.canonical(q);
      for (int64_t c = 0; c < cols; ++c) {
        normalised.as<float>()[q * cols + c] = static_cast<float>(query.values[c] * query.inverse_norm);
      }
    }
    queries = normalised.as<float>();
  }

  const int64_t splits = context.plan.row_splits;
  const bool screens =
      context.plan.screens && !check_finite && ready != nullptr && ready->format() == PanelFormat::screened;
  if (screens) {  // of an index, whose rows have been looked at
    context.queries.pack(ready->centre(), context.meter, context.resources);
    return parallel_for(splits, context.meter, context.resources, [&](int64_t split, int slot) {
      RangeScan scan(context, queries, split, slot, false);
      ScreenedRangeScan(context, *ready, split, scan)
          .run(ready->panel_count() * split / splits, ready->panel_count() * (split + 1) / splits);
    });
  }
  const int64_t tiles = (base.rows() + kTileRows - 1) / kTileRows;
  std::vector<int64_t> bad(static_cast<size_t>(splits), -1);
  parallel_for(splits, context.meter, context.resources, [&](int64_t split, int slot) {
    const int64_t first = tiles * split / splits * kTileRows;
    const int64_t end = std::min(tiles * (split + 1) / splits * kTileRows, base.rows());
    bad[static_cast<size_t>(split)] = RangeScan(context, queries, split, slot, check_finite).run(first, end);
  });
  for (const int64_t row : bad) {
    if (row >= 0) throw_not_finite("base", first_row + row);
  }
}

}  // namespace kith
