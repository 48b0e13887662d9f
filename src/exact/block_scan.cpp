#include "exact/block_scan.hpp"

#include "core/infinity.hpp"
#include "core/reused_memory.hpp"
#include "core/slot.hpp"
#include "exact/key_bounds.hpp"
#include "kernels/distance/distance_block_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/panel_ring.hpp"
#include "kernels/panels/screen.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <optional>

namespace kith {
namespace {

constexpr int64_t kFewestKeys = 64;  // before anything is concluded from them
// A key by itself takes as long as so many in a block.
constexpr int64_t kRowAlone = 4;
constexpr int64_t kSampled = 8;  // rows of a stretch

// Fallback for queries of a product scan whose error bounds exclude too few rows: many rows are equal or nearly so,
// norms differ too much, values exceed f32, or most rows are in range. Each such key would be computed by itself.
//
// Each stretch of panels starts with products. Once a quarter of a query's rows have needed keys, the rest of the
// stretch, and twice as many stretches each time, compute all keys by blocks (canonical_block), which takes no longer.
// In range searches, which collect keys at once, a few sampled keys of a stretch decide beforehand. Only the time
// depends on this, never the result.
//
// Memory: dense_block_bytes() a task, once a query needs it, in the task's `memory`.
class DenseScan {
 public:
  // For `count` queries from `first_query` on. Query numbers below are relative to it.
  DenseScan(CpuScanner& scanner, int64_t first_query, int64_t count, int64_t split, int slot, HostBuffer& memory)
      : scanner_(scanner),
        memory_(memory),
        first_query_(first_query),
        split_(split),
        slot_(slot),
        from_(static_cast<size_t>(count)),
        scored_(static_cast<size_t>(count)),
        use_(static_cast<size_t>(count), ScreenUse(0)),
        samples_(scanner.plan().dense && scanner.user().takes_keys() && scanner.keeps_all()),
        sample_(static_cast<size_t>(count), samples_) {}

  // Rows first .. end - 1 are next. Returns whether any query is tried with products.
  bool begin(int64_t first, int64_t end) {
    first_ = first;
    end_ = end;
    bool tried = false;
    for (size_t q = 0; q < from_.size(); ++q) {
      scored_[q] = 0;
      if (sample_[q] && mostly_in_range(static_cast<int64_t>(q))) {
        from_[q] = first;
        continue;
      }
      sample_[q] = false;
      from_[q] = !scanner_.plan().dense || use_[q].screens_next() ? end : first;
      tried = tried || from_[q] == end;
    }
    return tried;
  }
  // Whether finish() will scan the query's rows from `row` on.
  bool takes(int64_t query, int64_t row) const { return from_[static_cast<size_t>(query)] <= row; }
  // Records that the rows up to `row` have been scanned, for which `scored` keys had to be computed.
  void count(int64_t query, int64_t row, int64_t scored) {
    const auto q = static_cast<size_t>(query);
    scored_[q] += scored;
    if (!scanner_.plan().dense || scored == 0 || scored_[q] < kFewestKeys || scored_[q] * kRowAlone < row - first_)
      return;
    from_[q] = std::min(row, end_);
  }
  // Scans the rest of the stretch by blocks. Returns whether there were rows.
  bool finish() {
    ReusedVector<int64_t> queries;
    bool any = false;
    for (int64_t from = first_; from < end_;) {
      int64_t next = end_;
      queries.clear();
      for (size_t q = 0; q < from_.size(); ++q) {
        if (from_[q] == from) queries.push_back(static_cast<int64_t>(q));
        if (from_[q] > from) next = std::min(next, from_[q]);
      }
      if (!queries.empty()) scan(queries, from, end_);
      any = any || !queries.empty();
      from = next;
    }
    for (size_t q = 0; q < from_.size(); ++q) {
      if (from_[q] == first_) continue;  // it was not tried
      use_[q].count(1, from_[q] < end_ ? 1 : 0);
      sample_[q] = samples_ && from_[q] < end_;
    }
    return any;
  }

 private:
  // Whether most sampled rows of the stretch are in range.
  bool mostly_in_range(int64_t query) const {
    uint32_t rows[kSampled];
    float keys[kSampled];
    for (int64_t i = 0; i < kSampled; ++i) rows[i] = static_cast<uint32_t>(first_ + i * (end_ - first_) / kSampled);
    canonical_keys_cpu(scanner_.kind(), scanner_.canonical(first_query_ + query), scanner_.base(), rows, kSampled,
                       keys);
    const float most = scanner_.user().threshold(first_query_ + query);
    return std::count_if(keys, keys + kSampled, [&](float key) { return key <= most; }) * kRowAlone >= kSampled;
  }
  void scan(const ReusedVector<int64_t>& queries, int64_t first, int64_t end) {
    const int64_t cols = scanner_.base().cols();
    if (memory_.bytes() == 0) memory_ = HostBuffer(dense_block_bytes(cols), "a block of pairs", scanner_.resources());
    std::byte* const scratch = memory_.data();
    float* const keys = Slot<float>{canonical_block_bytes(cols)}.in(scratch);
    CanonicalQuery some[kDenseQueries];
    for (int64_t at = 0; at < static_cast<int64_t>(queries.size()); at += kDenseQueries) {
      const int64_t count = std::min<int64_t>(kDenseQueries, static_cast<int64_t>(queries.size()) - at);
      const int64_t* const mine = queries.data() + at;
      for (int64_t i = 0; i < count; ++i) some[i] = scanner_.canonical(first_query_ + mine[i]);
      for (int64_t row = first; row < end; row += kDenseRows) {
        const MatrixView rows = scanner_.base().slice(row, std::min(kDenseRows, end - row));
        canonical_block_cpu({scanner_.kind(), some, count, rows, keys, kDenseRows}, scratch);
        for (int64_t i = 0; i < count; ++i) push(mine[i], keys + i * kDenseRows, rows.rows(), row);
        scanner_.meter().checkpoint();
      }
    }
  }
  void push(int64_t query, const float* keys, int64_t count, int64_t first_row) {
    constexpr int64_t kGroup = CandidateList::kLargestGroup;
    CandidateList& list = scanner_.list(first_query_ + query, split_);
    if (scanner_.user().takes_keys() && scanner_.keeps_all()) {
      if (list.size() > 0) scanner_.make_room(first_query_ + query, split_, slot_);  // earlier rows first
      const auto row = static_cast<uint32_t>(scanner_.first_row() + first_row);
      return scanner_.user().take_keys(first_query_ + query, row, keys, count, slot_);
    }
    scanner_.exchange_threshold(first_query_ + query, &list);
    for (int64_t i = 0; i < count; i += kGroup) {
      const int64_t before = list.size();
      list.push_exact_group(keys + i, std::min(kGroup, count - i), list.exact_limit(),
                            static_cast<uint32_t>(first_row + i));
      if (!scanner_.keeps_all()) list.keep_since(before, [&](uint32_t row) { return scanner_.keeps_row(row); });
      if (!list.has_room()) scanner_.make_room(first_query_ + query, split_, slot_);
    }
  }

  CpuScanner& scanner_;
  HostBuffer& memory_;
  const int64_t first_query_;
  const int64_t split_;
  const int slot_;
  int64_t first_ = 0;
  int64_t end_ = 0;
  ReusedVector<int64_t> from_;    // of each query: its first row that is left to finish()
  ReusedVector<int64_t> scored_;  // in this stretch
  ReusedVector<ScreenUse> use_;
  const bool samples_;        // whether a few keys decide,
  ReusedVector<bool> sample_;  // and of which queries: those that have just begun, or had most rows in range
};

// All hits of a panel are added to a candidate list at once.
static_assert(kMostRowsPerPanel <= CandidateList::kLargestGroup);

class FloatBlockScan final : public ScreenHits, private BlockScan<float> {
 public:
  // `ring`: of the f32 panels, where `packed` lacks them. `dense`: for the keys of whole blocks.
  FloatBlockScan(CpuScanner& scanner, const PackedRows& packed, int64_t first_row, const BlockTask& task,
                 PanelRing* ring, HostBuffer& dense)
      : BlockScan(scanner, packed, first_row, task, -kInfinity),
        ring_(ring),
        panels_(ring == nullptr ? packed.panels() : ring->panels()),
        dense_(scanner, first_query_, query_count_, split_, slot_, dense),
        relative_(relative_error(scanner.kind(), panels_.cols)),
        scale_(packed.scale()),
        differences_(has_differences(scanner.kind())),
        direct_error_(direct_error(panels_.cols)),
        direct_underflow_(static_cast<float>(underflow_error(panels_.cols))) {
    // Rows that equal k before them count for ranges, and where a filter may leave out those before them.
    const int64_t k = scanner.plan().list_length;
    if (scanner.keeps_all() && !scanner.user().takes_keys() && k <= PackedRows::kMostRepeats)
      repeats_ = packed.repeats();
    for (int64_t q = 0; q < query_count_; ++q) set_limit(q);
    queries_ = scanner.packed().panels(first_query_, query_count_, limits_.data());
    const bool screens = has_screen(packed.format()) && scanner.plan().format == PanelFormat::screened;
    if (!screens || !ScreenedProduct::pays()) return;
    const RoundedQueries rounded = scanner.packed().screen_panels(first_query_, query_count_, limits_.data());
    screened_.emplace(queries_, panels_, rounded, packed.screen_panels(), *this);
  }

  void run() {
    for_panels(panels_.cols, [&](int64_t first, int64_t count) { scan_range(first, count); });
  }
  // Scans these panels alone: where they lie in a ring, no more of them than it holds.
  void run(int64_t first, int64_t count) {
    scan_range(first, count);
    checkpoint(count);
  }

  void on_hit(int64_t query, int64_t panel, const float* values) override {
    if (dense_.takes(query, first_row_of(panel))) return;
    const int64_t width = packed_.rows_per_panel();
    const float limit = limits_[static_cast<size_t>(query)];
    const float offset = scanner_.packed().offset(first_query_ + query);
    const ErrorBound bound = queries_.bound(query);
    const float* const norms = panels_.row_norms + panel * width;
    float bounds[kMostRowsPerPanel];
    float limits[kMostRowsPerPanel];
    for (int64_t i = 0; i < width; ++i) {
      bounds[i] = bound.at(norms[i]);
      limits[i] = limit + bounds[i];
    }
    // The panel was tested with its largest norm; here each row is tested with its own.
    const uint64_t rows = places_within(values, limits, width);
    if (rows == 0) return;
    const bool wide = differences_ && kWide * bounds[std::countr_zero(rows)] > limit + offset;
    if (wide && takes_rows()) return on_rows(query, panel, rows);
    CandidateList& candidates = list(query);
    const int64_t before = candidates.size();
    candidates.push_group(values, rows & live_rows(panel),
                          {offset, bounds, relative_, scanner_.kind() == KeyKind::l2, unit()}, first_row_of(panel));
    took_since(before, query, panel);
  }

  bool takes_rows() const override { return scale_ == 1; }
  bool needs_rows(int64_t query, int64_t panel) const override {
    if (!differences_) return false;
    const float most = limits_[static_cast<size_t>(query)] + scanner_.packed().offset(first_query_ + query);
    return 4 * queries_.bound(query).at(panels_.norms[panel]) > most;
  }

  bool holds_panel(int64_t panel) const override { return ring_ == nullptr || ring_->holds(panel); }
  void make_panels(int64_t first, int64_t count) override {
    if (ring_ != nullptr) ring_->make(first, count);
  }

  // Rows that lie close together beside their distance from the origin: products say little of them, differences do.
  // Also used for a few rows of a panel that is not packed yet.
  void on_rows(int64_t query, int64_t panel, uint64_t rows) override {
    if (dense_.takes(query, first_row_of(panel))) return;
    rows &= live_rows(panel);
    if (!differences_) return on_products(query, panel, rows);
    CandidateList& candidates = list(query);
    const int64_t before = candidates.size();
    float sums[kMostRowsPerPanel];
    scan_differences_cpu(scanner_.query(first_query_ + query), scanner_.base(), first_row_of(panel), rows, sums);
    // Two rows take as long as one of a block of keys: worth it unless half of the rows come so far.
    dense_.count(query, first_row_of(panel) + static_cast<uint32_t>(rows_in(panel)), std::popcount(rows) / 2);
    const bool root = scanner_.kind() == KeyKind::l2;
    const float most = threshold_sum(query);
    for (const float* sum = sums; rows != 0; rows &= rows - 1, ++sum) {
      const float error = *sum * direct_error_ + direct_underflow_;
      const bool known = error < kInfinity;  // not of a NaN
      const float lower = known ? *sum - error : -kInfinity;
      if (lower > most) continue;
      const float upper = known ? *sum + error : kInfinity;
      candidates.push(root ? root_below(lower) : lower, root ? root_above(upper) : upper,
                      first_row_of(panel) + static_cast<uint32_t>(std::countr_zero(rows)));
    }
    if (candidates.size() > before) took_since(before, query, panel);
  }

 private:
  // The same for inner_product and cosine.
  void on_products(int64_t query, int64_t panel, uint64_t rows) {
    const CanonicalQuery own = scanner_.canonical(first_query_ + query);
    const double squared = scanner_.squared_norm(first_query_ + query);
    const bool cosine = scanner_.kind() == KeyKind::cosine;
    CandidateList& candidates = list(query);
    const int64_t before = candidates.size();
    const int64_t count = std::popcount(rows);
    float values[kMostRowsPerPanel];
    float bound_sums[kMostRowsPerPanel];
    scan_products_cpu(own.values, scanner_.base(), first_row_of(panel), rows, values, bound_sums);
    dense_.count(query, first_row_of(panel) + static_cast<uint32_t>(rows_in(panel)), count / 2);
    float lower[kMostRowsPerPanel];
    float upper[kMostRowsPerPanel];
    if (cosine) {  // bounds are of a query of length 1; of very long and very short ones nothing is known
      const bool known = squared > kShortestQuery && squared < kLongestQuery;
      const float inverse = known ? static_cast<float>(own.inverse_norm) : kInfinity;
      for (int64_t i = 0; i < count; ++i) values[i] *= inverse;
    }
    KeyBounds(scanner_.kind(), panels_.cols, squared).bound(values, bound_sums, count, lower, upper);
    const float most = candidates.threshold();
    for (int64_t i = 0; i < count; ++i, rows &= rows - 1) {
      if (lower[i] > most) continue;
      candidates.push(lower[i], upper[i], first_row_of(panel) + static_cast<uint32_t>(std::countr_zero(rows)));
    }
    if (candidates.size() > before) took_since(before, query, panel);
  }

  // Filters the candidates that a panel has added.
  void took_since(int64_t before, int64_t query, int64_t panel) {
    CandidateList& candidates = list(query);
    if (!scanner_.keeps_all()) candidates.keep_since(before, [&](uint32_t row) { return scanner_.keeps_row(row); });
    if (const TiesWithKth ties(scanner_.base(), candidates); ties) {
      const int64_t passed = candidates.size();
      candidates.keep_since(before, [&](uint32_t row) { return !ties(row); });
      // Where half of all rows come so far, blocks of keys take less time.
      dense_.count(query, first_row_of(panel) + rows_in(panel), (passed - candidates.size()) / 2);
    }
    if (candidates.has_room()) return;
    dense_.count(query, first_row_of(panel) + rows_in(panel), make_room(query));
    set_limit(query);
  }

  // Squared lengths between which products with rows neither overflow nor lose their digits, where cosine is told.
  static constexpr double kShortestQuery = 1e-20;
  static constexpr double kLongestQuery = 1e20;
  static constexpr float kWide = 16;               // bounds beyond this part of what is wanted
  static constexpr int64_t kShortestStretch = 16;  // panels
  static constexpr int64_t kLongestStretch = 256;

  void scan_range(int64_t first, int64_t count) {
    for (int64_t at = first; at < first + count;) {
      if (all_repeated(at)) {
        ++at;
        continue;
      }
      int64_t panels = 1;
      while (panels < stretch_ && at + panels < first + count && !all_repeated(at + panels)) ++panels;
      scan(at, panels);
      at += panels;
    }
  }

  // Few panels at a time where products may not decide, so that the fallback starts early.
  void scan(int64_t first, int64_t count) {
    const int64_t first_row = first_row_of(first);
    const int64_t end_row = first_row_of(first + count - 1) + rows_in(first + count - 1);
    const bool tried = dense_.begin(first_row, end_row);
    for (int64_t q = 0; q < query_count_; ++q) {
      if (dense_.takes(q, first_row)) limits_[static_cast<size_t>(q)] = std::numeric_limits<float>::lowest();
    }
    if (tried && screened_) screened_->scan(first, count);
    if (tried && !screened_) {
      make_panels(first, count);
      scan_panels(queries_, panels_, first, count, *this);
    }
    if (!dense_.finish()) {
      stretch_ = std::min(2 * stretch_, kLongestStretch);
      return;
    }
    stretch_ = kShortestStretch;
    for (int64_t q = 0; q < query_count_; ++q) set_limit(q);
  }

  void set_limit(int64_t query) {
    const float key = largest_key(query);
    const float most = differences_ ? largest_scaled_sum(scanner_.kind(), key, scale_) : key + 2 * relative_ * key;
    limits_[static_cast<size_t>(query)] = most - scanner_.packed().offset(first_query_ + query);
  }

  // The factor from scaled keys to keys.
  float unit() const { return scanner_.kind() == KeyKind::l2 ? 1 / scale_ : 1 / (scale_ * scale_); }
  // The largest sum of squared differences that matters.
  float threshold_sum(int64_t query) const {
    const float most = list(query).threshold();
    return scanner_.kind() == KeyKind::l2 ? square_above(most) : most;
  }

  // Whether every row of a panel equals k before it.
  bool all_repeated(int64_t panel) const { return repeats_ != nullptr && live_rows(panel) == 0; }
  // A bit for each row of a panel that equals fewer.
  uint64_t live_rows(int64_t panel) const {
    const int64_t count = rows_in(panel);
    if (repeats_ == nullptr) return count < 64 ? (uint64_t{1} << count) - 1 : ~uint64_t{0};
    uint64_t rows = 0;
    const uint8_t* const repeats = repeats_ + panel * packed_.rows_per_panel();
    for (int64_t i = 0; i < count; ++i) rows |= uint64_t{repeats[i] < scanner_.plan().list_length} << i;
    return rows;
  }

  PanelRing* const ring_;
  const PanelBase panels_;
  DenseScan dense_;
  int64_t stretch_ = kShortestStretch;
  const float relative_;  // error of a value that is a sum of differences, beside the bound
  const float scale_;     // of the packed vectors
  const bool differences_;
  const float direct_error_;  // of a sum of squared differences in f32, relative to it, and what may underflow
  const float direct_underflow_;
  const uint8_t* repeats_ = nullptr;  // of packed rows, where those that equal k before them are left out
  PanelQueries queries_;
  std::optional<ScreenedProduct> screened_;
};

class ByteBlockScan final : public BytePanelHits, private BlockScan<int32_t> {
 public:
  ByteBlockScan(CpuScanner& scanner, const PackedRows& packed, int64_t first_row, const BlockTask& task)
      : BlockScan(scanner, packed, first_row, task, kSmallestLimit), panels_(packed.byte_panels()) {
    for (int64_t q = 0; q < query_count_; ++q) set_limit(q);
    queries_ = scanner.packed().byte_panels(first_query_, query_count_, limits_.data());
  }

  void run() {
    for_panels(panels_.cols,
               [&](int64_t first, int64_t count) { scan_byte_panels(queries_, panels_, first, count, *this); });
  }

  void on_hit(int64_t query, int64_t panel, uint64_t passed, const int32_t* values) override {
    const int32_t offset = scanner_.packed().byte_offset(first_query_ + query);
    CandidateList& candidates = list(query);
    if (const int64_t count = rows_in(panel); count < 64) passed &= (uint64_t{1} << count) - 1;
    for (; passed != 0; passed &= passed - 1) {
      const int i = std::countr_zero(passed);
      const uint32_t row = first_row_of(panel) + static_cast<uint32_t>(i);
      if (scanner_.keeps_row(row)) candidates.push_exact(key_of_sum(scanner_.kind(), values[i] + offset), row);
    }
    if (candidates.has_room()) return;
    make_room(query);
    set_limit(query);
  }

 private:
  void set_limit(int64_t query) {
    const int64_t limit =
        int64_t{largest_sum(scanner_.kind(), largest_key(query))} - scanner_.packed().byte_offset(first_query_ + query);
    limits_[static_cast<size_t>(query)] =
        static_cast<int32_t>(std::clamp<int64_t>(limit, kSmallestLimit, kLargestLimit));
  }

  const BytePanelBase panels_;
  BytePanelQueries queries_;
};

}  // namespace

void scan_float_block(CpuScanner& scanner, const PackedRows& packed, int64_t first_row, const BlockTask& task) {
  HostBuffer dense;
  FloatBlockScan(scanner, packed, first_row, task, nullptr, dense).run();
}

void scan_made_blocks(CpuScanner& scanner, const PackedRows& packed, const BlockTask& task, int64_t blocks,
                      std::byte* memory) {
  PanelRing ring(packed, scanner.base(), scanner.plan().panel_rows, memory);
  HostBuffer dense;
  std::deque<FloatBlockScan> scans;  // which stay where they are
  for (int64_t i = 0; i < blocks; ++i) {
    scans.emplace_back(scanner, packed, 0, BlockTask{task.block + i, task.split, task.slot}, &ring, dense);
  }
  const PanelRange all = panels_of_split(packed, scanner.plan(), task.split);
  for (int64_t panel = all.first; panel < all.end; panel += ring.size()) {
    const int64_t count = std::min(ring.size(), all.end - panel);
    for (FloatBlockScan& scan : scans) scan.run(panel, count);
  }
}

void scan_byte_block(CpuScanner& scanner, const PackedRows& packed, int64_t first_row, const BlockTask& task) {
  ByteBlockScan(scanner, packed, first_row, task).run();
}

}  // namespace kith
