// One task of a scan of rows as they lie: all queries against a range of rows, tile by tile, so that a tile is read
// from memory once; short rows are put side by side first. What the error bounds do not exclude goes to the queries'
// lists.
#pragma once

#include "exact/cpu_scanner.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/panels/screen.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class TileScan {
 public:
  static constexpr int64_t kTileRows = kColumnRows;

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
  int64_t run(int64_t first, int64_t end);
  // One query against at most kTileRows rows, of which the first is number `first`. Returns as run().
  int64_t scan_tile(int64_t query, const MatrixView& rows, int64_t first);

 private:
  // Whether rows of bytes are multiplied as they are, with the queries that are bytes too.
  static bool takes_bytes(CpuScanner& scanner);
  static bool puts_side_by_side(CpuScanner& scanner);
  void put_side_by_side(const MatrixView& rows);
  // Fills values_, and `facts` unless it is null.
  void scan_rows(int64_t query, const MatrixView& rows, float* facts);
  // From what is in values_ and facts_: of all rows, and of those from `begin` to `end`.
  int64_t take_tile(int64_t query, const MatrixView& rows, int64_t first);
  int64_t take_rows(int64_t query, const MatrixView& rows, int64_t first, int64_t begin, int64_t end);

  CpuScanner& scanner_;
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

// The same behind the screen of a prepared base: the rows that it does not rule out, in stretches of panels, where it is
// of use.
class ScreenedTileScan final : private PanelHits {
 public:
  // `scan` does what is left of the work. The queries are packed for `packed`.
  ScreenedTileScan(CpuScanner& scanner, const PackedRows& packed, int64_t split, TileScan& scan);

  void run(int64_t first_panel, int64_t end_panel);

 private:
  void on_hit(int64_t query, int64_t panel, const float* rounded) override;
  void set_limit(int64_t query);

  CpuScanner& scanner_;
  const RoundedBase base_;
  const int64_t rows_per_panel_;
  const int64_t split_;
  TileScan& scan_;
  std::vector<float> limits_;
  const RoundedQueries queries_;
  ScreenUse use_;
  int64_t read_ = 0;  // rows, in this stretch
};

}  // namespace kith
