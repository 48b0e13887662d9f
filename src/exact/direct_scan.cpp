#include "exact/direct_scan.hpp"

#include "core/host_array.hpp"
#include "exact/screened_tile_scan.hpp"
#include "exact/tile_scan.hpp"
#include "rows/finite_check.hpp"

#include <algorithm>
#include <vector>

namespace kith {

void direct_scan(const ScanContext& context, const PackedRows* ready, bool check_finite, int64_t first_row) {
  const MatrixView& base = context.base;
  const int64_t cols = base.cols();
  // Cosine scans with normalised queries, which keeps their products clear of underflow.
  const HostArray<float> normalised(context.kind == KeyKind::cosine ? context.queries.size() * cols : 0,
                                    "the normalised queries", context.resources);
  const float* queries = context.queries.row(0);
  if (context.kind == KeyKind::cosine) {
    for (int64_t q = 0; q < context.queries.size(); ++q) {
      const CanonicalQuery query = context.queries.canonical(q);
      for (int64_t c = 0; c < cols; ++c) {
        normalised[q * cols + c] = static_cast<float>(query.values[c] * query.inverse_norm);
      }
    }
    queries = normalised.data();
  }

  const int64_t splits = context.plan.row_splits;
  const bool screens =
      context.plan.screens && !check_finite && ready != nullptr && ready->format() == PanelFormat::screened;
  if (screens) {  // of an index, whose rows have been looked at
    context.queries.pack(ready->origin(), context.meter, context.resources);
    return parallel_for(splits, context.meter, context.resources, [&](int64_t split, int slot) {
      TileScan scan(context, queries, split, slot, false);
      ScreenedTileScan(context, *ready, split, scan)
          .run(ready->panel_count() * split / splits, ready->panel_count() * (split + 1) / splits);
    });
  }
  const int64_t tiles = (base.rows() + TileScan::kTileRows - 1) / TileScan::kTileRows;
  std::vector<int64_t> bad(static_cast<size_t>(splits), -1);
  parallel_for(splits, context.meter, context.resources, [&](int64_t split, int slot) {
    const int64_t first = tiles * split / splits * TileScan::kTileRows;
    const int64_t end = std::min(tiles * (split + 1) / splits * TileScan::kTileRows, base.rows());
    bad[static_cast<size_t>(split)] = TileScan(context, queries, split, slot, check_finite).run(first, end);
  });
  for (const int64_t row : bad) {
    if (row >= 0) throw_not_finite("base", first_row + row);
  }
}

}  // namespace kith
