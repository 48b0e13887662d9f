// One task of a product scan: a block of queries against a range of panels, with the queries' limits lowered as their
// candidate lists fill.
#pragma once

#include "exact/scan_context.hpp"
#include "kernels/panels/packed_rows.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kith {

struct ScanBlock {
  int64_t first_query = 0;
  int64_t query_count = 0;
  int64_t first_panel = 0;
  int64_t end_panel = 0;
  int64_t first_row = 0;  // of the packed rows, in the scanned base
  int64_t split = 0;      // which list of each query
  int slot = 0;           // the thread's
};

// What the scans of both kinds of panels share. `Limit` is the type of a value.
template <typename Limit>
class BlockScan {
 protected:
  // Queries that only fill up a panel accept `nothing`.
  BlockScan(const ScanContext& context, const PackedRows& packed, const ScanBlock& block, Limit nothing)
      : context_(context), packed_(packed), block_(block) {
    const int64_t width = context.queries.packed().panel_width();
    limits_.assign(static_cast<size_t>(round_up(block.query_count, width)), nothing);
  }

  // Calls scan(first panel, count) for all panels, looking up now and then.
  template <typename Scan>
  void for_panels(int64_t cols, const Scan& scan) {
    const int64_t step = std::max<int64_t>(1, kColumnsBetweenCheckpoints / cols);
    for (int64_t panel = block_.first_panel; panel < block_.end_panel; panel += step) {
      const int64_t count = std::min(step, block_.end_panel - panel);
      scan(panel, count);
      context_.meter.add(block_.query_count * count * packed_.rows_per_panel());
      context_.meter.checkpoint();
    }
  }

  // Of a panel: its rows, and the first one's number in the scanned base.
  int64_t rows_in(int64_t panel) const {
    return std::min(packed_.rows_per_panel(), packed_.rows() - panel * packed_.rows_per_panel());
  }
  uint32_t first_row_of(int64_t panel) const {
    return static_cast<uint32_t>(block_.first_row + panel * packed_.rows_per_panel());
  }

  CandidateList& list(int64_t query) const { return context_.list(block_.first_query + query, block_.split); }
  // The largest key of a row to come that matters, after hearing from the query's other lists.
  float largest_key(int64_t query) const {
    context_.exchange_threshold(block_.first_query + query, &list(query));
    return list(query).limit();
  }
  // Returns how many keys were computed for it.
  int64_t make_room(int64_t query) const {
    return context_.make_room(block_.first_query + query, block_.split, block_.slot);
  }

  static constexpr int64_t kColumnsBetweenCheckpoints = 1 << 17;  // tens of milliseconds of work
  const ScanContext& context_;
  const PackedRows& packed_;
  const ScanBlock& block_;
  std::vector<Limit> limits_;
};

// Floats: values within a bound become candidates.
void scan_float_block(const ScanContext& context, const PackedRows& packed, const ScanBlock& block);
// Bytes: values are exact, and so are the candidates' keys.
void scan_byte_block(const ScanContext& context, const PackedRows& packed, const ScanBlock& block);

}  // namespace kith
