// The tasks of a CpuScanner. Of a product scan: a block of queries against a range of panels, with the queries' limits
// lowered as their candidate lists fill. Of a scan of rows in place: all queries against a range of rows.
#pragma once

#include "core/divide.hpp"
#include "core/reused_memory.hpp"
#include "exact/cpu_scanner.hpp"
#include "kernels/distance/error_bound.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kith {

// The largest sum of scaled vectors (PackedRows::scale) whose key is at most this one. A key is the sum or its root,
// rounded once.
inline float largest_scaled_sum(KeyKind kind, float key, float scale) {
  if (kind == KeyKind::l2) return square_above(key * scale);
  if (scale == 1) return key;
  return std::nextafter(key, std::numeric_limits<float>::infinity()) * (scale * scale);
}

// A block of queries and a part of the rows, for the thread `slot`.
struct BlockTask {
  int64_t block = 0;
  int64_t split = 0;
  int slot = 0;
};

struct PanelRange {
  int64_t first = 0;
  int64_t end = 0;
};
inline PanelRange panels_of_split(const PackedRows& packed, const KnnCpuPlan& plan, int64_t split) {
  return {packed.panel_count() * split / plan.row_splits, packed.panel_count() * (split + 1) / plan.row_splits};
}

// The base of scans over both kinds of panels. `Limit` is the type of a value.
template <typename Limit>
class BlockScan {
 protected:
  // `first_row`: number of the first packed row in the scanned base. Padding queries accept `nothing`.
  BlockScan(CpuScanner& scanner, const PackedRows& packed, int64_t first_row, const BlockTask& task, Limit nothing)
      : scanner_(scanner), packed_(packed), first_row_(first_row), slot_(task.slot), split_(task.split) {
    first_query_ = task.block * scanner.plan().query_block;
    query_count_ = std::min(scanner.plan().query_block, scanner.queries() - first_query_);
    limits_.assign(static_cast<size_t>(round_up(query_count_, scanner.packed().panel_width())), nothing);
  }

  // Calls scan(first panel, count) for all panels, with checkpoints in between.
  template <typename Scan>
  void for_panels(int64_t cols, const Scan& scan) {
    const PanelRange all = panels_of_split(packed_, scanner_.plan(), split_);
    const int64_t step = std::max<int64_t>(1, kColumnsBetweenCheckpoints / cols);
    for (int64_t panel = all.first; panel < all.end; panel += step) {
      const int64_t count = std::min(step, all.end - panel);
      scan(panel, count);
      checkpoint(count);
    }
  }
  // Reports this many scanned panels to the meter; throws if the search was cancelled.
  void checkpoint(int64_t panels) const {
    scanner_.meter().add(query_count_ * panels * packed_.rows_per_panel());
    scanner_.meter().checkpoint();
  }

  // A panel's rows, and the number of its first row in the scanned base.
  int64_t rows_in(int64_t panel) const {
    return std::min(packed_.rows_per_panel(), packed_.rows() - panel * packed_.rows_per_panel());
  }
  uint32_t first_row_of(int64_t panel) const {
    return static_cast<uint32_t>(first_row_ + panel * packed_.rows_per_panel());
  }

  CandidateList& list(int64_t query) const { return scanner_.list(first_query_ + query, split_); }
  // The largest key with which a later row matters, after taking over thresholds of the query's other lists.
  float largest_key(int64_t query) const {
    scanner_.exchange_threshold(first_query_ + query, &list(query));
    return list(query).limit();
  }
  // Returns how many keys this took.
  int64_t make_room(int64_t query) const { return scanner_.make_room(first_query_ + query, split_, slot_); }

  static constexpr int64_t kColumnsBetweenCheckpoints = 1 << 17;  // tens of milliseconds of work
  CpuScanner& scanner_;
  const PackedRows& packed_;
  const int64_t first_row_;
  const int slot_;       // the thread's
  const int64_t split_;  // which list of each query
  int64_t first_query_;
  int64_t query_count_;
  ReusedVector<Limit> limits_;
};

// For floats: values within a bound become candidates.
void scan_float_block(CpuScanner& scanner, const PackedRows& packed, int64_t first_row, const BlockTask& task);
// The same for rows without panels, for `blocks` blocks of queries from task.block on, which share the panels packed in
// `memory` (PanelRing).
void scan_made_blocks(CpuScanner& scanner, const PackedRows& packed, const BlockTask& task, int64_t blocks,
                      std::byte* memory);
// For bytes: values are exact, and so are the candidates' keys.
void scan_byte_block(CpuScanner& scanner, const PackedRows& packed, int64_t first_row, const BlockTask& task);

// Scans rows in place, their part `split` (tile_scan.cpp). `queries`: contiguous, in the form that is compared. Returns
// the first row that is not finite, or -1; later rows are then not scanned.
int64_t scan_tiles(CpuScanner& scanner, const float* queries, int64_t split, int slot, bool check_finite);
// The same behind the screen of a prepared base, for which the scanner's queries are packed.
void scan_screened_tiles(CpuScanner& scanner, const float* queries, const PackedRows& ready, int64_t split, int slot);

}  // namespace kith
