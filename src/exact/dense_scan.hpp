// Queries of a product scan for which the bounds rule out too little: many rows are equal or nearly so, norms are too
// far apart, values too large for f32, or everything is in range. Every such row's key would be computed one by one.
//
// Stretch by stretch of panels each query is tried with products; where it turns out that a quarter of its rows needs
// keys, the rest of the stretch, and twice as many stretches each time, get all their keys by blocks (canonical_block),
// which takes no longer. Where keys are taken as they come (a range search), a few keys of a stretch tell beforehand.
// Keys are keys: this changes the time, never the result.
//
// Memory: dense_block_bytes() a task, once a query needs it.
#pragma once

#include <kith/host_buffer.hpp>

#include "exact/scan_context.hpp"
#include "kernels/panels/screen_use.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class DenseScan {
 public:
  // Of `count` queries from `first_query` on, which below count from there.
  DenseScan(const ScanContext& context, int64_t first_query, int64_t count, int64_t split, int slot);

  // Rows first .. end - 1 are next. Returns whether any query is tried with products.
  bool begin(int64_t first, int64_t end);
  // Whether the query's rows from `row` on are left to finish().
  bool takes(int64_t query, int64_t row) const { return from_[static_cast<size_t>(query)] <= row; }
  // The rows up to `row` have been scanned, and so many keys of the query had to be computed.
  void count(int64_t query, int64_t row, int64_t scored);
  // Scans what is left of the stretch. Returns whether there was anything.
  bool finish();

 private:
  // Whether enough of a few rows of the stretch are in range.
  bool mostly_in_range(int64_t query) const;
  void scan(const std::vector<int64_t>& queries, int64_t first, int64_t end);
  void push(int64_t query, const float* keys, int64_t count, int64_t first_row);

  const ScanContext& context_;
  const int64_t first_query_;
  const int64_t split_;
  const int slot_;
  int64_t first_ = 0;
  int64_t end_ = 0;
  std::vector<int64_t> from_;    // of each query: its first row that is left to finish()
  std::vector<int64_t> scored_;  // in this stretch
  std::vector<ScreenUse> use_;
  const bool samples_;        // whether a few keys decide,
  std::vector<bool> sample_;  // and of which queries: those that have just begun, or had most rows in range
  HostBuffer memory_;
};

}  // namespace kith
