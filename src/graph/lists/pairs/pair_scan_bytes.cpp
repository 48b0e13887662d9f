// Sets of bytes: their sums, and so their keys, are exact.
#include "core/divide.hpp"
#include "graph/lists/pairs/first_values.hpp"
#include "graph/lists/pairs/pair_scan.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/panels/panel_format.hpp"
#include "kernels/select/set_bytes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace kith {
namespace {

// Below every sum: in place of a limit, nothing matters.
constexpr int32_t kNoSum = INT32_MIN;
constexpr int64_t kAhead = 12;  // rows on their way while one is copied

// most - offset, or the nearest that a limit may be.
int32_t limit_of(int32_t most, int32_t offset) {
  const auto limit = static_cast<int32_t>(static_cast<uint32_t>(most) - static_cast<uint32_t>(offset));
  // Without branches, so that the compiler vectorises it: a difference that wrapped around is on the wrong side of
  // `most`.
  const int32_t not_above = offset < 0 && limit < most ? kLargestLimit : limit;
  return std::max(offset > 0 && not_above > most ? kSmallestLimit : not_above, kSmallestLimit);
}

class BytePairScan final : public PairScan, private BytePanelHits {
 public:
  BytePairScan(const PairRows& rows, int64_t most_queries, int64_t most_rows, const Resources& resources)
      : all_(rows),
        resources_(resources),
        most_rows_(most_rows),
        shape_(panel_shape(rows.format())),
        bytes_(packed_bytes(rows.format(), rows.cols())),
        scratch_(bytes_ * std::max(shape_.rows_per_panel, shape_.queries_per_panel), "a set of rows", resources),
        rows_(most_rows, shape_.rows_per_panel, bytes_, resources),
        queries_(most_queries, shape_.queries_per_panel, bytes_, resources),
        limits_(queries_.terms.size(), "a set of rows", resources),
        row_limits_(divide_up(most_rows, shape_.rows_per_panel), "a set of rows", resources) {
    const PanelFormat format = rows.format();
    rows_.flip = shape_.signed_bytes && format == PanelFormat::u8 ? 0x80 : 0;
    rows_.filler = kLargestLimit / 2;
    queries_.flip = shape_.signed_bytes && format == PanelFormat::i8 ? 0x80 : 0;
    queries_.filler = kLargestRowLimit;  // none passes
    queries_.one_by_one = shape_.query_rows;
    if (format == PanelFormat::bits) return;  // which have no sums
    rows_.weights = {byte_row_term(format, shape_, rows.kind(), {1, 0}),
                     byte_row_term(format, shape_, rows.kind(), {0, 1})};
    queries_.weights = {byte_query_offset(format, shape_, rows.kind(), {1, 0}),
                        byte_query_offset(format, shape_, rows.kind(), {0, 1})};
  }

  void set_rows(const uint32_t* rows, int64_t count) override { pack(rows, count, rows_); }
  void set_queries(const uint32_t* rows, int64_t count) override { pack(rows, count, queries_); }

  void limit_query(int64_t query, float key) override {
    queries_.sums[query] = sum_for(key);
    limits_[query] = limit_of(queries_.sums[query], queries_.terms[query]);
  }
  void limit_row(int64_t row, float key) override { rows_.sums[row] = sum_for(key); }
  bool exact() const override { return true; }

  // Computes all sums first: then the nearest rows are known, and no others need to be considered.
  void run_nearest(PairHits& hits, bool same) override {
    if (rows_.count > kMostNearest || queries_.count > kMostNearest) return run(hits);
    make_room_for_nearest();
    const int64_t width = shape_.rows_per_panel;
    std::fill_n(limits_.data(), round_up(queries_.count, shape_.queries_per_panel), kLargestLimit);
    std::fill(least_.begin(), least_.end(), kLargestLimit);
    collects_ = Collects::sums;
    scan_byte_panels({queries_.panels.data(), queries_.count, limits_.data()}, base(), 0, divide_up(rows_.count, width),
                     *this);
    collects_ = Collects::nothing;
    for (int64_t query = 0; query < queries_.count; ++query) {
      int32_t* const sums = pair_sums_.data() + query * stride_;
      if (same) sums[query] = kLargestLimit;
      for (int64_t i = 0; i < rows_.count; ++i) least_[i] = std::min(least_[i], sums[i]);
    }
    for (int64_t i = 0; i < rows_.count; ++i) rows_.sums[i] = nearest_only(rows_.sums[i], least_[i]);
    for (int64_t query = 0; query < queries_.count; ++query) hand_out_nearest(query, hits);
  }

  void make_room_for_nearest() override {
    if (pair_sums_.size() > 0) return;
    stride_ = round_up(std::min(most_rows_, kMostNearest), shape_.rows_per_panel);
    pair_sums_ = HostArray<int32_t>(std::min(limits_.size(), kMostNearest) * stride_, "the sums of pairs", resources_);
    least_ = HostArray<int32_t>(stride_, "the sums of pairs", resources_);
  }
  void make_room_for_first(int64_t wanted) override {
    if (firsts_.wanted() != wanted) firsts_ = FirstValues<int32_t>(wanted, most_rows_, resources_);
  }

  void run_first(int64_t wanted, PairFirsts& firsts) override {
    make_room_for_first(wanted);
    collects_ = Collects::first;
    const int64_t step = whole_panels(kFirstQueries, shape_);
    for (int64_t first = 0; first < queries_.count; first += step) {
      const int64_t count = std::min(step, queries_.count - first);
      std::fill_n(limits_.data() + first, round_up(count, shape_.queries_per_panel), kLargestLimit);
      scan_byte_panels({queries_.panels.data() + first * bytes_, count, limits_.data() + first}, base(), 0,
                       divide_up(rows_.count, shape_.rows_per_panel), *this);
      for (int64_t q = 0; q < count; ++q) pick_first(q, first + q, firsts);
    }
    collects_ = Collects::nothing;
  }

  void run(PairHits& hits) override {
    hits_ = &hits;
    const int64_t width = shape_.rows_per_panel;
    const int64_t panels = divide_up(rows_.count, width);
    for (int64_t panel = 0; panel < panels; ++panel) {
      const int32_t* const sums = rows_.sums.data() + panel * width;
      row_limits_[panel] = std::clamp(*std::max_element(sums, sums + width), -kLargestRowLimit, kLargestRowLimit);
    }
    for (int64_t q = 0; q < queries_.count; ++q) limits_[q] = limit_of(queries_.sums[q], queries_.terms[q]);
    std::fill(limits_.data() + queries_.count, limits_.data() + round_up(queries_.count, shape_.queries_per_panel),
              kSmallestLimit);
    scan_byte_panels(
        {queries_.panels.data(), queries_.count, limits_.data(), row_limits_.data(), queries_.terms.data()}, base(), 0,
        panels, *this);
  }

 private:
  enum class Collects : uint8_t { nothing, first, sums };
  static constexpr int64_t kTogether = 64;  // pairs

  // One side of the comparison: vectors in panels, the term of each (of a query, its offset), and the largest sum that
  // matters.
  struct Side {
    Side(int64_t most, int64_t panel_width, int64_t bytes, const Resources& resources)
        : width(panel_width),
          panels(round_up(most, width) * bytes, "a set of rows", resources),
          terms(round_up(most, width), "a set of rows", resources),
          sums(round_up(most, width), "a set of rows", resources) {}

    // A term is a linear combination of a row's sums.
    int32_t term(const PairRows& all, uint32_t row) const {
      return weights.sum == 0 && weights.squares == 0
                 ? 0
                 : weights.sum * all.sums(row).sum + weights.squares * all.sums(row).squares;
    }

    int64_t width;
    HostArray<std::byte> panels;
    HostArray<int32_t> terms;
    HostArray<int32_t> sums;
    ByteSums weights{0, 0};
    int32_t filler = 0;       // the term of what only fills a panel up
    uint8_t flip = 0;         // bits that the product wants changed
    bool one_by_one = false;  // vectors of a panel are not put side by side
    int64_t count = 0;
  };

  void pack(const uint32_t* rows, int64_t count, Side& side) {
    side.count = count;
    for (int64_t i = 0; i < std::min(kAhead, count); ++i) all_.prefetch(rows[i]);
    for (int64_t first = 0; first < count; first += side.width) {
      const int64_t here = std::min(side.width, count - first);
      std::byte* const to = side.panels.data() + first * bytes_;
      std::byte* const from = side.one_by_one ? to : scratch_.data();
      for (int64_t i = 0; i < here; ++i) {
        if (first + i + kAhead < count) all_.prefetch(rows[first + i + kAhead]);
        copy(rows[first + i], side.flip, from + i * bytes_);
        side.terms[first + i] = side.term(all_, rows[first + i]);
      }
      std::fill(side.terms.data() + first + here, side.terms.data() + first + side.width, side.filler);
      if (side.one_by_one) {
        std::memset(to + here * bytes_, 0, static_cast<size_t>((side.width - here) * bytes_));
      } else {
        pack_panel(all_.format(), all_.cols(), from, here, side.width, to);
      }
    }
    std::fill_n(side.sums.data(), round_up(count, side.width), kNoSum);
  }

  int32_t sum_for(float key) const { return std::isnan(key) ? kNoSum : largest_sum(all_.kind(), key); }

  void copy(uint32_t row, uint8_t flip, std::byte* to) const {
    const uint8_t* const from = all_.bytes(row);
    auto* const out = reinterpret_cast<uint8_t*>(to);
    if (flip == 0) {
      std::memcpy(out, from, static_cast<size_t>(all_.cols()));
    } else {
      for (int64_t c = 0; c < all_.cols(); ++c) out[c] = from[c] ^ flip;
    }
    std::fill(out + all_.cols(), out + bytes_, uint8_t{0});
  }

  BytePanelBase base() const {
    return {rows_.panels.data(), rows_.terms.data(), all_.format(), all_.cols(), has_differences(all_.kind()) ? 2 : 1};
  }

  // The largest sum within a limit whose key is that of the least sum.
  int32_t nearest_only(int32_t most, int32_t least) const {
    if (least > most || least == kLargestLimit) return kNoSum;  // which no pair has
    return std::min(most, largest_sum(all_.kind(), key_of_sum(all_.kind(), least)));
  }

  void hand_out_nearest(int64_t query, PairHits& hits) {
    const int32_t* const sums = pair_sums_.data() + query * stride_;
    const int32_t most = nearest_only(queries_.sums[query], *std::min_element(sums, sums + rows_.count));
    for (int64_t first = 0; first < rows_.count; first += kTogether) {
      const int64_t count = std::min(kTogether, rows_.count - first);
      alignas(8) uint8_t sides[kTogether] = {};
      for (int64_t i = 0; i < count; ++i) {
        const int32_t sum = sums[first + i];
        sides[i] = static_cast<uint8_t>((sum <= most ? 1 : 0) | (sum <= rows_.sums[first + i] ? 2 : 0));
      }
      for_each_set(sides, count, [&](int64_t i) {
        const float key = key_of_sum(all_.kind(), sums[first + i]);
        hits.on_pair({query, first + i, key, key, (sides[i] & 1) != 0, (sides[i] & 2) != 0});
      });
    }
  }

  // The rows whose keys are not above that of the last one wanted.
  void pick_first(int64_t kept, int64_t query, PairFirsts& firsts) {
    if (rows_.count == 0) return;
    const int32_t offset = queries_.terms[query];
    const int32_t last = firsts_.limit(kept, rows_.count) + offset;
    const int32_t most = largest_sum(all_.kind(), key_of_sum(all_.kind(), last));
    const int64_t count = firsts_.find(kept, rows_.count, limit_of(most, offset));
    for (int64_t i = 0; i < count; ++i) {
      firsts_.keys()[i] = key_of_sum(all_.kind(), firsts_.of(kept)[firsts_.places()[i]] + offset);
    }
    firsts.on_first(query, firsts_.places(), firsts_.keys(), count);
  }

  void on_hit(int64_t query, int64_t panel, uint64_t passed, const int32_t* values) override {
    const int64_t first = panel * shape_.rows_per_panel;
    if (collects_ == Collects::first) {
      std::copy_n(values, shape_.rows_per_panel, firsts_.of(query) + first);
      return;
    }
    if (collects_ == Collects::sums) {
      int32_t* const sums = pair_sums_.data() + query * stride_ + first;
      const int32_t offset = queries_.terms[query];
      for (int64_t i = 0; i < shape_.rows_per_panel; ++i) sums[i] = values[i] + offset;
      return;
    }
    if (const int64_t count = rows_.count - first; count < 64) passed &= (uint64_t{1} << count) - 1;
    for (; passed != 0; passed &= passed - 1) {
      const int i = std::countr_zero(passed);
      const int64_t sum = int64_t{values[i]} + queries_.terms[query];
      const bool for_query = sum <= queries_.sums[query];
      const bool for_row = sum <= rows_.sums[first + i];
      if (!for_query && !for_row) continue;
      const float key = key_of_sum(all_.kind(), static_cast<int32_t>(sum));
      hits_->on_pair({query, first + i, key, key, for_query, for_row});
    }
  }

  const PairRows& all_;
  const Resources resources_;
  const int64_t most_rows_;
  const PanelShape shape_;
  const int64_t bytes_;  // of a packed vector
  HostArray<std::byte> scratch_;
  Side rows_;
  Side queries_;
  HostArray<int32_t> limits_;
  HostArray<int32_t> row_limits_;  // of each panel
  PairHits* hits_ = nullptr;
  FirstValues<int32_t> firsts_;
  Collects collects_ = Collects::nothing;  // instead of handing hits out
  // For run_nearest: by query and row, and the least of each row.
  HostArray<int32_t> pair_sums_;
  HostArray<int32_t> least_;
  int64_t stride_ = 0;
};

}  // namespace

std::unique_ptr<PairScan> make_byte_pair_scan(const PairRows& rows, int64_t most_queries, int64_t most_rows,
                                              const Resources& resources) {
  return std::make_unique<BytePairScan>(rows, most_queries, most_rows, resources);
}

}  // namespace kith
