// Sets of floats: rounded to bytes where that is faster, and within bounds either way.
#include "core/cpu_target.hpp"
#include "core/divide.hpp"
#include "core/infinity.hpp"
#include "graph/lists/pairs/chi_square_pairs.hpp"
#include "graph/lists/pairs/first_values.hpp"
#include "graph/lists/pairs/pair_scan.hpp"
#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/panels/panel_format.hpp"
#include "kernels/panels/rounded_panels.hpp"
#include "kernels/panels/screen.hpp"
#include "kernels/select/set_bytes.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

namespace kith {
namespace {

// As RoundedQueryTerms, for values in f32.
RoundedQueryTerms float_query_terms(KeyKind kind, double squared, int64_t cols) {
  ErrorBound bound;
  if (is_product(kind)) {
    const double norm = std::sqrt(squared);
    bound = has_differences(kind) ? squared_l2_product_bound(norm, cols) : inner_product_bound(norm, cols);
  } else {  // relative to the value, but for what underflows
    bound.constant = static_cast<float>(underflow_error(cols));
  }
  if (!(squared < kLargestSquaredNorm)) bound.constant = kInfinity;
  return {0, bound.constant, bound.linear, bound.quadratic, 0};
}

// Loops that the compiler takes many of at once: no branches, and nothing is written that another may read.
void lower_each(const float* __restrict values, float bound, float relative, int64_t count, float* __restrict rows,
                float* __restrict query) {
  for (int64_t i = 0; i < count; ++i) {
    const float above = values[i] + bound + relative * values[i];  // a NaN is above nothing
    rows[i] = above < rows[i] ? above : rows[i];
    query[i] = above < query[i] ? above : query[i];
  }
}

bool any_within(const float* __restrict values, float change, float most, const float* __restrict row_most,
                int64_t count) {
  int32_t any = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float limit = row_most[i] > most ? row_most[i] : most;
    any |= values[i] + change > limit ? 0 : 1;
  }
  return any != 0;
}

class FloatPairScan final : public PairScan, private PanelHits {
 public:
  FloatPairScan(const PairRows& rows, int64_t most_queries, int64_t most_rows, const Resources& resources,
                FloatPairs floats)
      : all_(rows),
        resources_(resources),
        rounds_(rows.features() || (rows.format() == PanelFormat::rounded && floats == FloatPairs::may_be_rounded)),
        tiles_(rounds_ && cpu_extensions().amx),
        shape_(tiles_ ? kRoundedTileShape : panel_shape(rounds_ ? PanelFormat::rounded : PanelFormat::f32)),
        words_(tiles_    ? units_per_part(PanelFormat::i8, rows.product_cols())
               : rounds_ ? rounded_words(rows.product_cols())
                         : rows.cols()),
        query_flip_(rounds_ && shape_.signed_bytes ? 0x80808080u : 0),
        kind_(rows.product_kind()),
        features_(rows.features()),  // which are always rounded
        query_scale_(!is_product(kind_) ? 1.0f : has_differences(kind_) ? -2.0f : -1.0f),
        relative_(relative_error(kind_, rows.cols())),
        most_rows_(most_rows),
        padded_rows_(round_up(most_rows, shape_.rows_per_panel)),
        // Whole panels of any width.
        padded_queries_(round_up(round_up(most_queries, shape_.queries_per_panel), kMostQueriesPerPanel)),
        scratch_(words_ * std::max(shape_.rows_per_panel, shape_.queries_per_panel), "a set of rows", resources),
        row_panels_(padded_rows_ * words_, "a set of rows", resources),
        terms_(padded_rows_, "a set of rows", resources),
        scales_(padded_rows_, "a set of rows", resources),
        sums_(padded_rows_, "a set of rows", resources),
        row_most_(padded_rows_, "a set of rows", resources),
        norms_(padded_rows_ / shape_.rows_per_panel, "a set of rows", resources),
        residuals_(norms_.size(), "a set of rows", resources),
        row_limits_(norms_.size(), "a set of rows", resources),
        query_panels_(padded_queries_ * words_, "a set of rows", resources),
        factors_(padded_queries_, "a set of rows", resources),
        constant_(padded_queries_, "a set of rows", resources),
        linear_(padded_queries_, "a set of rows", resources),
        quadratic_(padded_queries_, "a set of rows", resources),
        tilt_(padded_queries_, "a set of rows", resources),
        offsets_(padded_queries_, "a set of rows", resources),
        query_most_(padded_queries_, "a set of rows", resources),
        limits_(padded_queries_, "a set of rows", resources),
        chi_square_(rows) {}

  void set_rows(const uint32_t* rows, int64_t count) override {
    row_count_ = count;
    chi_square_.set_rows(rows);
    const int64_t width = shape_.rows_per_panel;
    prefetch(rows, count);
    for (int64_t first = 0; first < count; first += width) {
      const int64_t here = std::min(width, count - first);
      float norm = 0;
      float residual = 0;
      for (int64_t i = 0; i < here; ++i) {
        const double squared = take(rows[first + i], 0, 1.0f, scratch_.data() + i * words_);
        terms_[first + i] = has_differences(kind_) ? static_cast<float>(squared) : 0.0f;
        norm = std::max(norm, squared < kLargestSquaredNorm ? static_cast<float>(std::sqrt(squared)) : kInfinity);
        if (!rounds_) continue;
        const PairRows::Rounded& rounded = all_.rounded(rows[first + i]);
        scales_[first + i] = rounded.scale;
        sums_[first + i] = rounded.sum;
        residual = std::isfinite(rounded.residual) ? std::max(residual, rounded.residual) : kInfinity;
      }
      std::fill(terms_.data() + first + here, terms_.data() + first + width, kInfinity);
      std::fill(scales_.data() + first + here, scales_.data() + first + width, 0.0f);
      std::fill(sums_.data() + first + here, sums_.data() + first + width, 0);
      norms_[first / width] = norm;
      residuals_[first / width] = residual;
      pack_units(scratch_.data(), words_, here, words_, width, row_panels_.data() + first * words_);
    }
    std::fill_n(row_most_.data(), round_up(count, width), kNothingMatters);
  }

  void set_queries(const uint32_t* rows, int64_t count) override {
    query_count_ = count;
    chi_square_.set_queries(rows);
    const int64_t width = shape_.queries_per_panel;
    prefetch(rows, count);
    for (int64_t first = 0; first < count; first += width) {
      const int64_t here = std::min(width, count - first);
      for (int64_t i = 0; i < width; ++i) {
        RoundedQueryTerms terms;
        offsets_[first + i] = 0;
        if (i < here) {
          const double squared = take(rows[first + i], query_flip_, query_scale_, scratch_.data() + i * words_);
          terms = query_terms(rows[first + i], squared);
          offsets_[first + i] = has_differences(kind_)        ? static_cast<float>(squared)
                                : kind_ == KeyKind::cosine ? 1.0f
                                                                 : 0.0f;
        }
        factors_[first + i] = terms.factor;
        constant_[first + i] = terms.constant;
        linear_[first + i] = terms.linear;
        quadratic_[first + i] = terms.quadratic;
        tilt_[first + i] = terms.tilt;
      }
      uint32_t* const panel = query_panels_.data() + first * words_;
      if (shape_.query_rows) {
        std::copy_n(scratch_.data(), here * words_, panel);
        std::fill_n(panel + here * words_, (width - here) * words_, 0u);
      } else {
        pack_units(scratch_.data(), words_, here, words_, width, panel);
      }
    }
    std::fill_n(query_most_.data(), round_up(count, width), kNothingMatters);
    std::fill(offsets_.data() + count, offsets_.data() + round_up(count, width), kInfinity);  // none passes
  }

  void limit_query(int64_t query, float key) override {
    query_most_[query] = most_for(key);
    if (rounds_) limits_[query] = query_most_[query] - offsets_[query];  // others' are raised panel by panel
  }
  void limit_row(int64_t row, float key) override { row_most_[row] = most_for(key); }
  bool exact() const override { return false; }

  // All values are computed first: who is nearest shows only then, and few others have to be looked at.
  void run_nearest(PairHits& hits, bool same) override {
    if (features_ || row_count_ > kMostNearest || query_count_ > kMostNearest) return run(hits);
    make_room_for_nearest();
    const int64_t width = shape_.rows_per_panel;
    hits_ = &hits;
    same_ = same;
    const int64_t panels = divide_up(row_count_, width);
    std::fill(least_.begin(), least_.end(), kInfinity);
    std::fill_n(limits_.data(), round_up(query_count_, shape_.queries_per_panel), kInfinity);
    collects_ = true;
    scan(0, panels);
    collects_ = false;
    for (int64_t row = 0; row < row_count_; ++row) row_most_[row] = std::min(row_most_[row], most_with(least_[row]));
    for (int64_t query = 0; query < query_count_; ++query) {
      const float* const lanes = query_least(query);
      query_most_[query] = std::min(query_most_[query], most_with(*std::min_element(lanes, lanes + width)));
      for (int64_t panel = 0; panel < panels; ++panel) {
        const float* const values = values_.data() + query * nearest_rows_ + panel * width;
        const float bound = bounds_[query * panels + panel];
        if (!any_within(values, -bound, query_most_[query], row_most_.data() + panel * width, width)) continue;
        look(query, panel, values, bound, 0);
      }
    }
  }

  void make_room_for_nearest() override {
    if (features_ || values_.size() > 0) return;
    const int64_t width = shape_.rows_per_panel;
    nearest_rows_ = std::min(padded_rows_, round_up(kMostNearest, width));
    const int64_t queries = std::min(padded_queries_, kMostNearest);
    values_ = HostArray<float>(queries * nearest_rows_, "the values of pairs", resources_);
    bounds_ = HostArray<float>(queries * nearest_rows_ / width, "the values of pairs", resources_);
    least_ = HostArray<float>(queries * width + nearest_rows_, "the values of pairs", resources_);
  }
  void make_room_for_first(int64_t wanted) override {
    if (firsts_.wanted() != wanted) firsts_ = FirstValues<float>(wanted, most_rows_, resources_);
  }

  void run_first(int64_t wanted, PairFirsts& firsts) override {
    make_room_for_first(wanted);
    const int64_t panels = divide_up(row_count_, shape_.rows_per_panel);
    const int64_t all = query_count_;
    const int64_t step = whole_panels(kFirstQueries, shape_);
    takes_first_ = true;
    for (first_query_ = 0; first_query_ < all; first_query_ += step) {
      query_count_ = std::min(step, all - first_query_);
      std::fill_n(limits_.data() + first_query_, round_up(query_count_, shape_.queries_per_panel), kInfinity);
      scan(0, panels);
      for (int64_t q = 0; q < query_count_; ++q) pick_first(q, panels, firsts);
    }
    takes_first_ = false;
    first_query_ = 0;
    query_count_ = all;
  }

  void run(PairHits& hits) override {
    hits_ = &hits;
    const int64_t width = shape_.rows_per_panel;
    const int64_t panels = divide_up(row_count_, width);
    const int64_t padded = round_up(query_count_, shape_.queries_per_panel);
    for (int64_t panel = 0; panel < panels; ++panel) {
      row_limits_[panel] = *std::max_element(row_most_.data() + panel * width, row_most_.data() + (panel + 1) * width);
    }
    std::fill(limits_.data() + query_count_, limits_.data() + padded, -kInfinity);
    if (rounds_) {
      for (int64_t q = 0; q < query_count_; ++q) limits_[q] = query_most_[q] - offsets_[q];
      return scan_rounded(0, panels, row_limits_.data());
    }
    for (int64_t panel = 0; panel < panels; ++panel) {
      for (int64_t q = 0; q < query_count_; ++q) {
        limits_[q] = std::max(query_most_[q], row_limits_[panel]) - offsets_[q];
      }
      scan(panel, 1);
    }
  }

 private:
  // A value is a key, or its square for l2, minus the query's offset.
  float most_for(float key) const {
    if (std::isnan(key)) return kNothingMatters;
    if (features_) return chi_square_.largest_value(key);
    if (kind_ == KeyKind::l2) return square_above(key);
    const float most = relative_ == 0 ? key : key + 2 * relative_ * key;  // which an infinite key stays
    return most == kNothingMatters ? std::nextafter(kNothingMatters, 0.0f) : most;
  }

  // The largest value whose key, once rounded, may be that of a value up to this one.
  float most_with(float value) const {
    if (!(value < kInfinity)) return value;
    if (kind_ == KeyKind::l2) return square_above(root_above(value));
    return relative_ == 0 ? value : value + 2 * relative_ * value;  // the other's error, which is its share too
  }

  void prefetch(const uint32_t* rows, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) rounds_ ? all_.prefetch(rows[i]) : all_.prefetch_values(rows[i]);
  }

  // One vector as it is packed; returns its squared norm.
  double take(uint32_t row, uint32_t flip, float scale, uint32_t* to) {
    if (rounds_) {
      std::memcpy(to, all_.rounded_bytes(row), static_cast<size_t>(rounded_words(all_.product_cols())) * 4);
      std::fill(to + rounded_words(all_.product_cols()), to + words_, 0u);
      if (flip != 0) {
        for (int64_t w = 0; w < words_; ++w) to[w] ^= flip;
      }
      return all_.rounded(row).squared_norm;
    }
    auto* const values = reinterpret_cast<float*>(to);
    widen_row(all_.view(), all_.row_at(row), values);
    const double squared = move_vector(kind_, all_.origin(), values, values);
    if (scale != 1.0f) {
      for (int64_t c = 0; c < words_; ++c) values[c] *= scale;
    }
    return squared;
  }

  RoundedQueryTerms query_terms(uint32_t row, double squared) const {
    if (!rounds_) return float_query_terms(kind_, squared, all_.cols());
    const PairRows::Rounded& rounded = all_.rounded(row);
    return rounded_query_terms({rounded.scale, rounded.residual, rounded.sum}, squared, all_.product_cols(),
                               has_differences(kind_));
  }

  // Those from first_query_ on.
  RoundedQueries rounded_queries(const float* row_limits = nullptr) const {
    return {reinterpret_cast<const int8_t*>(query_panels_.data() + first_query_ * words_),
            query_count_,
            limits_.data() + first_query_,
            factors_.data() + first_query_,
            constant_.data() + first_query_,
            linear_.data() + first_query_,
            quadratic_.data() + first_query_,
            tilt_.data() + first_query_,
            row_limits,
            offsets_.data() + first_query_};
  }

  void scan_rounded(int64_t first, int64_t count, const float* row_limits) {
    const RoundedBase base{reinterpret_cast<const int8_t*>(row_panels_.data()), terms_.data(), scales_.data(),
                           sums_.data(), norms_.data(), residuals_.data(), all_.product_cols()};
#if defined(KITH_X86)
    if (tiles_) return scan_rounded_amx(rounded_queries(row_limits), base, first, count, *this);
#endif
    scan_rounded_panels(rounded_queries(row_limits), base, first, count, *this);
  }

  void scan(int64_t first, int64_t count) {
    if (rounds_) return scan_rounded(first, count, nullptr);
    const PanelBase base{row_panels_.data(), terms_.data(), norms_.data(),
                         PanelFormat::f32,   all_.cols(),   panel_step(kind_)};
    const RoundedQueries some = rounded_queries();
    const PanelQueries queries{some.panels, query_count_,   some.limits, some.constant,
                               some.linear, some.quadratic, nullptr,     nullptr};
    scan_panels(queries, base, first, count, *this);
  }

  void on_hit(int64_t query, int64_t panel, const float* values) override {
    if (takes_first_) {
      std::copy_n(values, shape_.rows_per_panel, firsts_.of(query) + panel * shape_.rows_per_panel);
      return;
    }
    const float bound = rounded_queries().bound(query, norms_[panel], residuals_[panel]);
    if (collects_) return keep(query, panel, values, bound);
    look(query, panel, values, bound, offsets_[query]);
  }

  // The rows whose keys may be no larger than that of the last one wanted.
  void pick_first(int64_t query, int64_t panels, PairFirsts& firsts) {
    if (row_count_ == 0) return;
    float error = 0;
    for (int64_t panel = 0; panel < panels; ++panel) {
      const float bound = rounded_queries().bound(query, norms_[panel], residuals_[panel]);
      error = bound < kInfinity ? std::max(error, bound) : kInfinity;
      if (error == kInfinity) break;
    }
    if (!(error < kInfinity)) return all_are_first(query, firsts);
    const float offset = offsets_[first_query_ + query];
    if (features_) {
      if (!chi_square_.pick_first({first_query_ + query, query, error, offset}, row_count_, firsts_, firsts)) {
        all_are_first(query, firsts);
      }
      return;
    }
    const float last = firsts_.limit(query, row_count_) + offset;
    float limit = most_with(last + error + relative_ * last) + error;
    limit += 2 * relative_ * limit - offset;
    if (!(limit < kInfinity)) return all_are_first(query, firsts);
    firsts.on_first(first_query_ + query, firsts_.places(), nullptr, firsts_.find(query, row_count_, limit));
  }

  // Keeps a query's values with a panel, and lowers what is nearest to it and to the panel's rows.
  void keep(int64_t query, int64_t panel, const float* values, float bound) {
    const int64_t width = shape_.rows_per_panel;
    const int64_t first = panel * width;
    float* const kept = values_.data() + query * nearest_rows_ + first;
    bounds_[query * divide_up(row_count_, width) + panel] = bound;
    const float offset = offsets_[query];
    for (int64_t i = 0; i < width; ++i) kept[i] = values[i] + offset;  // rows that fill up have infinite terms
    if (same_ && query >= first && query < first + width) kept[query - first] = kInfinity;
    lower_each(kept, bound, relative_, width, least_.data() + first, query_least(query));
  }

  // A lane for each place in a panel.
  float* query_least(int64_t query) const { return least_.data() + nearest_rows_ + query * shape_.rows_per_panel; }

  // Hands out what may matter.
  void look(int64_t query, int64_t panel, const float* values, float bound, float offset) {
    const int64_t first = panel * shape_.rows_per_panel;
    const int64_t count = std::min(shape_.rows_per_panel, row_count_ - first);
    // Few rows pass, and which cannot be predicted: all are compared at once, without branches.
    alignas(8) uint8_t sides[kMostRowsPerPanel] = {};
    const float most = query_most_[query];
    const float* const row_most = row_most_.data() + first;
    for (int64_t i = 0; i < count; ++i) {
      const float least = values[i] - bound + offset;  // a NaN bounds nothing, and passes
      sides[i] = static_cast<uint8_t>((least > most ? 0 : 1) | (least > row_most[i] ? 0 : 2));
    }
    if (features_) return chi_square_.hand_out(query, first, sides, count, {most, row_most_.data()}, *hits_);
    for_each_set(sides, count, [&](int64_t i) {
      const bool for_query = (sides[i] & 1) != 0 && most != kNothingMatters;
      const bool for_row = (sides[i] & 2) != 0 && row_most[i] != kNothingMatters;
      if (for_query || for_row) hand_out(query, first + i, values[i] + offset, bound, for_query, for_row);
    });
  }

  void all_are_first(int64_t query, PairFirsts& firsts) {
    std::iota(firsts_.places(), firsts_.places() + row_count_, 0u);
    firsts.on_first(first_query_ + query, firsts_.places(), nullptr, row_count_);
  }

  void hand_out(int64_t query, int64_t row, float key, float bound, bool for_query, bool for_row) {
    const float error = bound + relative_ * key;
    const bool root = kind_ == KeyKind::l2;
    const float lower = root ? root_below(key - error) : key - error;
    const float upper = root ? root_above(key + error) : key + error;
    const bool known = std::isfinite(lower) && std::isfinite(upper);
    hits_->on_pair({query, row, known ? lower : -kInfinity, known ? upper : kInfinity, for_query, for_row});
  }

  const PairRows& all_;
  const Resources resources_;
  const bool rounds_;
  const bool tiles_;
  const PanelShape shape_;
  const int64_t words_;  // of a packed vector, 4 bytes each
  const uint32_t query_flip_;
  const KeyKind kind_;  // of the values
  const bool features_;    // they bound the keys of chi_square
  const float query_scale_;
  const float relative_;  // error of a value that is a sum of differences, beside the bound
  const int64_t most_rows_;
  const int64_t padded_rows_;
  const int64_t padded_queries_;
  HostArray<uint32_t> scratch_;
  HostArray<uint32_t> row_panels_;
  // As RoundedBase and RoundedQueries have them, the limits, and what is added.
  HostArray<float> terms_;
  HostArray<float> scales_;
  HostArray<int32_t> sums_;
  HostArray<float> row_most_;
  HostArray<float> norms_;  // of panels, as the two that follow
  HostArray<float> residuals_;
  HostArray<float> row_limits_;
  HostArray<uint32_t> query_panels_;
  HostArray<float> factors_;
  HostArray<float> constant_;
  HostArray<float> linear_;
  HostArray<float> quadratic_;
  HostArray<float> tilt_;
  HostArray<float> offsets_;
  HostArray<float> query_most_;
  HostArray<float> limits_;
  // For run_nearest.
  HostArray<float> values_;     // by query and row, with the query's offset
  HostArray<float> bounds_;     // by query and panel
  HostArray<float> least_;      // of rows, then of queries by lanes: the nearest has no larger value
  int64_t nearest_rows_ = 0;  // for which there is room
  bool same_ = false;
  bool collects_ = false;
  FirstValues<float> firsts_;
  bool takes_first_ = false;
  int64_t first_query_ = 0;  // of those that are scanned
  int64_t row_count_ = 0;
  int64_t query_count_ = 0;
  PairHits* hits_ = nullptr;
  ChiSquarePairs chi_square_;  // of features
};

}  // namespace

FloatPairs choose_float_pairs(int64_t cols, bool many_pass) {
  constexpr int64_t kMostColumns = 256;
  return many_pass && cols <= kMostColumns ? FloatPairs::as_they_are : FloatPairs::may_be_rounded;
}

std::unique_ptr<PairScan> make_pair_scan(const PairRows& rows, int64_t most_queries, int64_t most_rows,
                                         const Resources& resources, FloatPairs floats) {
  if (rows.custom() != nullptr) return make_custom_pair_scan(rows, most_queries, most_rows, resources);
  if (holds_bytes(rows.format())) return make_byte_pair_scan(rows, most_queries, most_rows, resources);
  return std::make_unique<FloatPairScan>(rows, most_queries, most_rows, resources, floats);
}

}  // namespace kith
