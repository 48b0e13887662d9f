// One task of such a scan behind the screen of a prepared base: the rows that it does not rule out, in stretches of
// panels, where it is of use.
#pragma once

#include "exact/tile_scan.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "kernels/panels/screen_use.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class ScreenedTileScan final : private PanelHits {
 public:
  // `scan` does what is left of the work. The queries are packed for `packed`.
  ScreenedTileScan(const ScanContext& context, const PackedRows& packed, int64_t split, TileScan& scan);

  void run(int64_t first_panel, int64_t end_panel);

 private:
  void on_hit(int64_t query, int64_t panel, const float* rounded) override;
  void set_limit(int64_t query);

  const ScanContext& context_;
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
