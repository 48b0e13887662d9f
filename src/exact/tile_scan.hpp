// One task of a scan of rows as they lie: all queries against a range of rows, tile by tile, so that a tile is read
// from memory once; short rows are put side by side first. What the error bounds do not exclude goes to the queries'
// lists.
#pragma once

#include "exact/scan_context.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"

#include <cstdint>

namespace kith {

class TileScan {
 public:
  static constexpr int64_t kTileRows = kColumnRows;

  // `queries`: one after the other, as they are compared.
  TileScan(const ScanContext& context, const float* queries, int64_t split, int slot, bool check_finite)
      : context_(context),
        queries_(queries),
        split_(split),
        slot_(slot),
        check_finite_(check_finite),
        takes_bytes_(takes_bytes(context)),
        side_by_side_(!takes_bytes_ && puts_side_by_side(context)) {}

  // Returns the first row that is not finite, or -1; what follows it is not looked at.
  int64_t run(int64_t first, int64_t end);
  // One query against at most kTileRows rows, of which the first is number `first`. Returns as run().
  int64_t scan_tile(int64_t query, const MatrixView& rows, int64_t first);

 private:
  // Whether rows of bytes are multiplied as they are, with the queries that are bytes too.
  static bool takes_bytes(const ScanContext& context);
  static bool puts_side_by_side(const ScanContext& context);
  void put_side_by_side(const MatrixView& rows);
  // Fills values_, and `facts` unless it is null.
  void scan_rows(int64_t query, const MatrixView& rows, float* facts);
  // From what is in values_ and facts_: of all rows, and of those from `begin` to `end`.
  int64_t take_tile(int64_t query, const MatrixView& rows, int64_t first);
  int64_t take_rows(int64_t query, const MatrixView& rows, int64_t first, int64_t begin, int64_t end);

  const ScanContext& context_;
  const float* const queries_;
  const int64_t split_;
  const int slot_;
  const bool check_finite_;
  const bool takes_bytes_;
  const bool side_by_side_;
  float columns_[kMostColumnsSideBySide * kTileRows];
  float values_[kTileRows];
  float facts_[kTileRows] = {};
};

}  // namespace kith
