// A scan of rows in place, and the same behind the screen of a prepared base.
#include "core/divide.hpp"
#include "core/infinity.hpp"
#include "core/reused_memory.hpp"
#include "exact/block_scan.hpp"
#include "exact/key_bounds.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/panels/screen.hpp"
#include "kernels/select/set_bytes.hpp"
#include "rows/finite_check.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kTileRows = kColumnRows;
constexpr int64_t kColumnsBetweenCheckpoints = 1 << 14;  // of tiles: milliseconds of work for each query

constexpr double kWorthwhile = 0.5;  // of all rows, read although they were screened
constexpr int64_t kAlone = 4;        // a row by itself takes as long as so many in a run

constexpr int64_t kFirstRows = 30;  // beyond k, of which the first threshold is made

// Converts values to bytes; false if some value is not a byte. T: uint8_t or int8_t.
template <typename T>
bool to_bytes(const float* values, int64_t cols, T* out) {
  constexpr auto kLeast = static_cast<float>(std::numeric_limits<T>::min());
  constexpr auto kMost = static_cast<float>(std::numeric_limits<T>::max());
  bool whole = true;
  for (int64_t c = 0; c < cols; ++c) {
    const float value = std::min(std::max(kLeast, values[c]), kMost);  // a NaN becomes the least
    out[c] = static_cast<T>(value);
    whole &= static_cast<float>(out[c]) == values[c];
  }
  return whole;
}

// Excludes most rows of a tile by a few operations each: an excluded row has a lower bound above the threshold.
// KeyBounds examines the others.
class QuickTest {
 public:
  // `bound_sums` are those of the tile's rows.
  QuickTest(KeyKind kind, int64_t cols, double query_squared_norm, float threshold, const float* bound_sums,
            int64_t rows)
      : kind_(kind) {
    const auto relative = static_cast<float>(product_error(cols));
    const auto absolute = static_cast<float>(underflow_error(cols));
    if (kind == KeyKind::inner_product) {
      // Sums of squares are in the order of their bits; NaN where one is: then nothing is excluded.
      int32_t bits = 0;
      for (int64_t i = 0; i < rows; ++i) bits = std::max(bits, std::bit_cast<int32_t>(std::fabs(bound_sums[i])));
      const auto largest = std::bit_cast<float>(bits);
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
  int64_t run(const float* values, const float* bound_sums, int64_t rows, uint16_t* left) const {
    const float limit = limit_;
    // Tests all rows without branches, which compilers vectorise: few pass, and which ones cannot be predicted.
    const auto keep = [&](const auto& excluded) {
      static_assert(kTileRows % 8 == 0);
      alignas(8) uint8_t passes[kTileRows];
      for (int64_t i = 0; i < rows; ++i) passes[i] = !excluded(values[i], bound_sums[i]);
      for (int64_t i = rows; i % 8 != 0; ++i) passes[i] = 0;
      int64_t count = 0;
      for_each_set(passes, rows, [&](int64_t i) { left[count++] = static_cast<uint16_t>(i); });
      return count;
    };
    switch (kind_) {
      case KeyKind::inner_product:
        return keep([=](float value, float) { return (value < limit) & (value > -kInfinity); });
      case KeyKind::cosine:
        return keep([=](float value, float bound_sum) {
          const bool known = (bound_sum > kSmallestSquaredNorm) & (bound_sum < static_cast<float>(kLargestSquaredNorm));
          return (limit > 0) & known & (value > -kInfinity) & ((value <= 0) | (value * value < limit * bound_sum));
        });
      case KeyKind::linf:
        return keep([=](float value, float bound_sum) {
          return (value > limit) & (value < kInfinity) & (bound_sum < kInfinity);
        });
      default: return keep([=](float value, float) { return (value > limit) & (value < kInfinity); });
    }
  }

 private:
  KeyKind kind_;
  float limit_ = 0;
};

// One task: all queries against a range of rows, tile by tile, so that a tile is read from memory once; short rows are
// transposed first. Rows that the error bounds do not exclude are appended to the queries' lists.
class TileScan {
 public:
  // `queries`: one after the other, as they are compared.
  TileScan(CpuScanner& scanner, const float* queries, int64_t split, int slot, bool check_finite)
      : scanner_(scanner),
        queries_(queries),
        split_(split),
        slot_(slot),
        check_finite_(check_finite),
        takes_bytes_(takes_bytes(scanner)),
        side_by_side_(!takes_bytes_ && puts_side_by_side(scanner)) {}

  // Returns the first row that is not finite, or -1; what follows it is not looked at.
  int64_t run(int64_t first, int64_t end) {
    const int64_t between_checkpoints = std::max<int64_t>(1, kColumnsBetweenCheckpoints / scanner_.base().cols());
    int64_t tiles = 0;
    for (int64_t tile = first; tile < end; tile += kTileRows) {
      const int64_t count = std::min(kTileRows, end - tile);
      const MatrixView rows = scanner_.base().slice(tile, count);
      if (side_by_side_) put_side_by_side(rows);
      for (int64_t q = 0; q < scanner_.queries(); ++q) {
        // Those of products are of the rows alone, and known after the first query.
        float* const bound_sums = q > 0 && is_product(scanner_.kind()) ? nullptr : bound_sums_;
        if (side_by_side_) {
          scan_columns_cpu(scanner_.kind(), queries_ + q * rows.cols(), {columns_, rows.cols(), count}, values_,
                           bound_sums);
        } else {
          scan_rows(q, rows, bound_sums);
        }
        if (const int64_t bad = take_tile(q, rows, tile); bad >= 0) return bad;
      }
      scanner_.meter().add(scanner_.queries() * count);
      if (++tiles % between_checkpoints == 0) scanner_.meter().checkpoint();
    }
    return -1;
  }

  // One query against at most kTileRows rows, of which the first is number `first`. Returns as run().
  int64_t scan_tile(int64_t query, const MatrixView& rows, int64_t first) {
    scan_rows(query, rows, bound_sums_);
    return take_tile(query, rows, first);
  }

 private:
  // Whether rows of bytes are multiplied as bytes, with queries of bytes.
  static bool takes_bytes(CpuScanner& scanner) {
    const MatrixView& base = scanner.base();
    const bool bytes = base.dtype() == DType::u8 || base.dtype() == DType::i8;
    return bytes && has_byte_scan() && is_product(scanner.kind()) && base.cols() >= kFewestDotColumns &&
           base.cols() <= kMostDotColumns;
  }

  // Rows of up to a vector or so: a sum across it takes longer than the rest, and so does a part of it. With more
  // columns it takes more than one query to make up for the transposition.
  static bool puts_side_by_side(CpuScanner& scanner) {
    const int64_t cols = scanner.base().cols();
    const int64_t most = scanner.queries() > 1 ? kMostColumnsSideBySide : kAlwaysSideBySide;
    return scanner.kind() != KeyKind::hamming && cols <= most;
  }

  void put_side_by_side(const MatrixView& rows) {
    const int64_t cols = rows.cols();
    const auto pack = [&](const float* floats, int64_t stride) {
      pack_units(floats, stride, rows.rows(), cols, kTileRows, columns_);
    };
    if (rows.dtype() == DType::f32) return pack(static_cast<const float*>(rows.data()), rows.row_stride());
    float widened[kMostColumnsSideBySide * kTileRows];
    if (rows.row_stride() == cols) {  // as one row, which short ones do not end
      widen_row(MatrixView(rows.data(), rows.dtype(), {1, rows.rows() * cols, rows.rows() * cols}), 0, widened);
    } else {
      for (int64_t i = 0; i < rows.rows(); ++i) widen_row(rows, i, widened + i * cols);
    }
    pack(widened, cols);
  }

  // Fills values_, and `bound_sums` unless it is null.
  void scan_rows(int64_t query, const MatrixView& rows, float* bound_sums) {
    uint8_t bytes[kMostDotColumns];
    const CanonicalQuery own = scanner_.canonical(query);
    const bool is_signed = rows.dtype() == DType::i8;
    if (takes_bytes_ && (is_signed ? to_bytes(own.values, rows.cols(), reinterpret_cast<int8_t*>(bytes))
                                   : to_bytes(own.values, rows.cols(), bytes))) {
      const double scale = scanner_.kind() == KeyKind::cosine ? own.inverse_norm : 1.0;
      scan_byte_rows_cpu(scanner_.kind(), bytes, static_cast<float>(scale), rows, values_, bound_sums);
    } else {
      scan_rows_cpu(scanner_.kind(), queries_ + query * rows.cols(), rows, values_, bound_sums);
    }
  }

  // Pushes candidates from values_ and bound_sums_: of all rows, or of rows begin .. end - 1.
  int64_t take_tile(int64_t query, const MatrixView& rows, int64_t first) {
    CandidateList& list = scanner_.list(query, split_);
    scanner_.exchange_threshold(query, &list);
    // Without a threshold every row passes: so few at first that they give one.
    const bool opens = list.threshold() == kInfinity && !scanner_.user().takes_keys();
    const int64_t few = opens ? std::min(scanner_.plan().list_length + kFirstRows, rows.rows()) : 0;
    if (few > 0) {
      if (const int64_t bad = take_rows(query, rows, first, 0, few); bad >= 0) return bad;
      if (few < rows.rows() && list.threshold() == kInfinity) scanner_.make_room(query, split_, slot_);
    }
    return take_rows(query, rows, first, few, rows.rows());
  }

  int64_t take_rows(int64_t query, const MatrixView& rows, int64_t first, int64_t begin, int64_t end) {
    const double squared_norm = scanner_.squared_norm(query);
    const KeyBounds bounds(scanner_.kind(), rows.cols(), squared_norm);
    CandidateList& list = scanner_.list(query, split_);
    float threshold = list.threshold();
    uint16_t left[kTileRows];
    const float* const values = values_ + begin;
    const float* const bound_sums = bound_sums_ + begin;
    const QuickTest quick(scanner_.kind(), rows.cols(), squared_norm, threshold, bound_sums, end - begin);
    int64_t count = quick.run(values, bound_sums, end - begin, left);
    if (const TiesWithKth ties(scanner_.base(), list); ties) {
      count = std::remove_if(left, left + count, [&](uint16_t i) { return ties(first + begin + i); }) - left;
    }
    float some_values[kTileRows];
    float some_bound_sums[kTileRows];
    for (int64_t n = 0; n < count; ++n) some_values[n] = values[left[n]];
    for (int64_t n = 0; n < count; ++n) some_bound_sums[n] = bound_sums[left[n]];
    float lower[kTileRows];
    float upper[kTileRows];
    bounds.bound(some_values, some_bound_sums, count, lower, upper);
    for (int64_t n = 0; n < count; ++n) {
      const int64_t i = begin + left[n];
      const bool counts = !(lower[n] > threshold) && scanner_.keeps_row(first + i);
      const bool known = lower[n] > -kInfinity;
      if (!known && counts && check_finite_ && !row_is_finite(rows, i)) return first + i;
      list.push_if(counts, lower[n], upper[n], static_cast<uint32_t>(first + i));
      if (counts && scanner_.plan().list_length == 1) list.share_threshold(threshold = std::min(threshold, upper[n]));
      if (list.has_room()) continue;
      scanner_.make_room(query, split_, slot_);
      threshold = list.threshold();
    }
    return -1;
  }

  CpuScanner& scanner_;
  const float* const queries_;
  const int64_t split_;
  const int slot_;
  const bool check_finite_;
  const bool takes_bytes_;
  const bool side_by_side_;
  float columns_[kMostColumnsSideBySide * kTileRows];
  float values_[kTileRows];
  float bound_sums_[kTileRows] = {};
};

// The same behind the screen of a prepared base: scans the rows that it does not exclude, in stretches of panels where
// the screen is effective. Such rows are scattered in memory: each is prefetched, and examined after some others.
class ScreenedTileScan final : private PanelHits {
 public:
  // `scan` does what is left of the work. The queries are packed for `packed`.
  ScreenedTileScan(CpuScanner& scanner, const PackedRows& packed, int64_t split, TileScan& scan)
      : scanner_(scanner),
        base_(packed.screen_panels()),
        scale_(packed.scale()),
        rows_per_panel_(packed.rows_per_panel()),
        split_(split),
        scan_(scan),
        limits_(static_cast<size_t>(scanner.queries() + kMostQueriesPerPanel), -kInfinity),
        queries_(scanner.packed().screen_panels(0, scanner.queries(), limits_.data())),
        use_(kWorthwhile) {}

  void run(int64_t first_panel, int64_t end_panel) {
    int64_t stretches = 0;
    for (int64_t panel = first_panel; panel < end_panel; panel += ScreenUse::kStretch) {
      const int64_t panels = std::min(ScreenUse::kStretch, end_panel - panel);
      const int64_t first = panel * rows_per_panel_;
      const int64_t end = std::min(first + panels * rows_per_panel_, scanner_.base().rows());
      for (int64_t q = 0; q < scanner_.queries(); ++q) set_limit(q);
      if (std::isinf(limits_[0]) || !use_.screens_next()) {
        scan_.run(first, end);
        continue;
      }
      read_ = 0;
      scan_rounded_panels(queries_, base_, panel, panels, *this);
      compute_queued();
      use_.count((end - first) * scanner_.queries(), read_);
      scanner_.meter().add(scanner_.queries() * (end - first));
      if (++stretches % kStretchesBetweenCheckpoints == 0) scanner_.meter().checkpoint();
    }
  }

 private:
  static constexpr int64_t kMostQueued = 8;
  static constexpr int64_t kPrefetchedBytes = 1024;  // of a row; then a core's own prefetching follows
  static constexpr int64_t kLine = 64;
  static constexpr int64_t kStretchesBetweenCheckpoints = 8;

  void on_hit(int64_t query, int64_t panel, const float* rounded) override {
    const int64_t first = panel * rows_per_panel_;
    const int64_t count = std::min(rows_per_panel_, scanner_.base().rows() - first);
    const float limit = queries_.limit(query, base_, panel);
    // A NaN does. Rows that a filter leaves out are not read: where it keeps few, most that are near are.
    const auto passes = [&](int64_t i) { return !(rounded[i] > limit) && scanner_.keeps_row(first + i); };
    int64_t passed = 0;
    for (int64_t i = 0; i < count; ++i) passed += passes(i);
    if (passed * kAlone >= count) {
      compute_queued();  // earlier rows first: a query's rows must come in order
      read_ += count;
      scan_.scan_tile(query, scanner_.base().slice(first, count), first);
      set_limit(query);
    } else {
      read_ += passed * kAlone;
      for (int64_t i = 0; i < count; ++i) {
        if (passes(i)) queue_row(query, first + i);
      }
    }
  }

  void queue_row(int64_t query, int64_t row) {
    const MatrixView& base = scanner_.base();
    const std::byte* const values = base.row(row);
    const int64_t bytes = std::min(base.cols() * size_of(base.dtype()), kPrefetchedBytes);
    for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(values + at);
    queued_[queued_count_++] = {query, row};
    if (queued_count_ == kMostQueued) compute_queued();
  }

  void compute_queued() {
    for (int64_t i = 0; i < queued_count_; ++i) {
      const auto [query, row] = queued_[i];
      scan_.scan_tile(query, scanner_.base().slice(row, 1), row);
      set_limit(query);
    }
    queued_count_ = 0;
  }

  // On value + offset, which is the key, or its square.
  void set_limit(int64_t query) {
    CandidateList& list = scanner_.list(query, split_);
    scanner_.exchange_threshold(query, &list);
    const float most = largest_scaled_sum(scanner_.kind(), list.limit(), scale_);
    limits_[static_cast<size_t>(query)] = most - scanner_.packed().offset(query);
  }

  CpuScanner& scanner_;
  const RoundedBase base_;
  const float scale_;
  const int64_t rows_per_panel_;
  const int64_t split_;
  TileScan& scan_;
  ReusedVector<float> limits_;
  const RoundedQueries queries_;
  ScreenUse use_;
  int64_t read_ = 0;  // rows, in this stretch
  struct QueuedRow {
    int64_t query;
    int64_t row;
  };
  QueuedRow queued_[kMostQueued];
  int64_t queued_count_ = 0;
};

}  // namespace

int64_t scan_tiles(CpuScanner& scanner, const float* queries, int64_t split, int slot, bool check_finite) {
  const int64_t rows = scanner.base().rows();
  const int64_t tiles = divide_up(rows, kTileRows);
  const int64_t splits = scanner.plan().row_splits;
  const int64_t first = tiles * split / splits * kTileRows;
  const int64_t end = std::min(tiles * (split + 1) / splits * kTileRows, rows);
  return TileScan(scanner, queries, split, slot, check_finite).run(first, end);
}

void scan_screened_tiles(CpuScanner& scanner, const float* queries, const PackedRows& ready, int64_t split, int slot) {
  const int64_t splits = scanner.plan().row_splits;
  TileScan scan(scanner, queries, split, slot, false);
  ScreenedTileScan(scanner, ready, split, scan)
      .run(ready.panel_count() * split / splits, ready.panel_count() * (split + 1) / splits);
}

}  // namespace kith
